package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/quota/v1/install"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
)

var charged = map[string]struct {
	empty    func() runtime.Object
	resource schema.GroupVersionResource
}{
	"PersistentVolumeClaim": {func() runtime.Object { return &v1.PersistentVolumeClaim{} }, v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")},
	"Service":               {func() runtime.Object { return &v1.Service{} }, v1.SchemeGroupVersion.WithResource("services")},
	"ConfigMap":             {func() runtime.Object { return &v1.ConfigMap{} }, v1.SchemeGroupVersion.WithResource("configmaps")},
	"ResourceClaim":         {func() runtime.Object { return &resourcev1.ResourceClaim{} }, resourcev1.SchemeGroupVersion.WithResource("resourceclaims")},
}

// askObject says whether LimitRange and quota let in the object that is given in place of the pod.
func askObject(c *casus) (any, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(c.raw, &head); err != nil {
		return nil, err
	}
	known, ok := charged[head.Kind]
	if !ok {
		return nil, fmt.Errorf("kind %q is not asked for", head.Kind)
	}
	object := known.empty()
	if err := json.Unmarshal(c.raw, object); err != nil {
		return refusal("Decode", err), nil
	}
	legacyscheme.Scheme.Default(object)
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	namespace := accessor.GetNamespace()
	seen := object
	if claim, isClaim := object.(*v1.PersistentVolumeClaim); isClaim {
		internal := &api.PersistentVolumeClaim{}
		if err := legacyscheme.Scheme.Convert(claim, internal, nil); err != nil {
			return refusal("Decode", err), nil
		}
		seen = internal
	}
	kind := known.resource.GroupVersion().WithKind(head.Kind)
	attributes := admission.NewAttributesRecord(seen, nil, kind, namespace, accessor.GetName(), known.resource, "",
		admission.Create, &metav1.CreateOptions{}, true, someone)
	interfaces := admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)

	limits, err := limitranger.NewLimitRanger(nil)
	if err != nil {
		return nil, err
	}
	initializer{c.world}.Initialize(limits)
	if err := limits.Validate(context.Background(), attributes, interfaces); err != nil {
		return refusal(limitranger.PluginName, err), nil
	}
	configuration, err := install.NewQuotaConfigurationForAdmission(c.world.factory, nil)
	if err != nil {
		return nil, err
	}
	evaluator := generic.NewRegistry(configuration.Evaluators()).Get(known.resource.GroupResource())
	if evaluator == nil {
		evaluator = generic.NewObjectCountEvaluator(known.resource.GroupResource(), nil, "")
	}
	after, err := resourcequota.CheckRequest(c.world.quotasOf(namespace), attributes, evaluator, nil)
	if err != nil {
		return refusal(resourcequota.PluginName, err), nil
	}
	reply := admissionAnswer{Allowed: true, Used: map[string]v1.ResourceList{}}
	for _, one := range after {
		reply.Used[one.Name] = one.Status.Used
	}
	return reply, nil
}
