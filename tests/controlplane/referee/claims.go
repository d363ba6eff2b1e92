//go:build !kubernetes1.34

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/resource"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
)

func init() { questions["claims"] = askClaims }

type claimsAnswer struct {
	Allowed bool `json:"allowed"`
	// Undecodable: the object was not even read; Errors is empty then.
	Undecodable string   `json:"undecodable,omitempty"`
	Errors      []string `json:"errors,omitempty"`
}

// askClaims says what the API server answers to the creation of a ResourceClaim, a
// ResourceClaimTemplate or a DeviceClass: its registry's strategy, hand-written and declarative
// validation together.
func askClaims(c *casus) (any, error) {
	obj, gvk, err := legacyscheme.Codecs.UniversalDecoder(resource.SchemeGroupVersion).Decode(c.raw, nil, nil)
	if err != nil {
		return claimsAnswer{Undecodable: err.Error()}, nil
	}
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(c.raw, &head); err != nil {
		return nil, err
	}
	client := noObjects.CoreV1().Namespaces()
	var strategy rest.RESTCreateStrategy
	switch head.Kind {
	case "ResourceClaim":
		strategy = resourceclaim.NewStrategy(client, nil)
	case "ResourceClaimTemplate":
		strategy = resourceclaimtemplate.NewStrategy(client)
	case "DeviceClass":
		strategy = deviceclass.Strategy
	default:
		return nil, fmt.Errorf("kind %q is not asked for", head.Kind)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	rest.FillObjectMetaSystemFields(accessor)
	ctx := genericapirequest.WithNamespace(context.Background(), accessor.GetNamespace())
	ctx = genericapirequest.WithRequestInfo(ctx, &genericapirequest.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIGroup: gvk.Group, APIVersion: gvk.Version,
		Namespace: accessor.GetNamespace(),
	})
	err = rest.BeforeCreate(strategy, ctx, obj)
	if err == nil {
		return claimsAnswer{Allowed: true}, nil
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Reason != metav1.StatusReasonInvalid {
		return claimsAnswer{Errors: []string{err.Error()}}, nil
	}
	answer := claimsAnswer{}
	for _, cause := range status.ErrStatus.Details.Causes {
		answer.Errors = append(answer.Errors, cause.Field+": "+cause.Message)
	}
	return answer, nil
}
