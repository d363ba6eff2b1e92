package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

type decodeAnswer struct {
	Allowed bool   `json:"allowed"`
	Message string `json:"message"`
}

// askDecode sends the object that is given in place of the pod as kubectl does, and reads it as the API
// server does under fieldValidation=Strict.
func askDecode(c *casus) (any, error) {
	sent, _, err := unstructured.UnstructuredJSONScheme.Decode(c.raw, nil, nil)
	if err != nil {
		return nil, err
	}
	body, err := runtime.Encode(unstructured.UnstructuredJSONScheme, sent)
	if err != nil {
		return nil, err
	}
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, fmt.Errorf("the API server reads no JSON")
	}
	_, _, err = info.StrictSerializer.Decode(body, nil, nil)
	if err != nil {
		return decodeAnswer{Message: err.Error()}, nil
	}
	return decodeAnswer{Allowed: true}, nil
}
