package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	apiservercompatibility "k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	registrypod "k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/extendedresourcetoleration"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/utils/clock"

	genericinitializer "k8s.io/apiserver/pkg/admission/initializer"
)

type cause struct {
	Field   string `json:"field"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

type admissionAnswer struct {
	Allowed bool `json:"allowed"`
	// Check names what refused: an admission plugin, "Decode" or "Validation".
	Check string `json:"check,omitempty"`
	// Message is the error as a client reads it; Bare is it without `pods "x" is forbidden: `.
	Message string  `json:"message,omitempty"`
	Bare    string  `json:"bare,omitempty"`
	Status  int32   `json:"status,omitempty"`
	Causes  []cause `json:"causes,omitempty"`
	// Mutated is the pod after defaulting and the mutating plugins, before validation.
	Mutated json.RawMessage `json:"mutated,omitempty"`
	// Pod is the pod as it would be stored.
	Pod json.RawMessage `json:"pod,omitempty"`
	// Fits is how many of Count pods are admitted before a quota refuses, Next its words for the one
	// that is not.
	Fits int    `json:"fits"`
	Next string `json:"next,omitempty"`
	// Used is status.used of each quota after an allowed pod.
	Used map[string]v1.ResourceList `json:"used,omitempty"`
}

var (
	podResource = v1.SchemeGroupVersion.WithResource("pods")
	podKind     = v1.SchemeGroupVersion.WithKind("Pod")
	someone     = &user.DefaultInfo{Name: "someone", Groups: []string{user.AllAuthenticated}}
)

type named struct {
	name   string
	plugin admission.Interface
}

// chain is the default-on plugins that look at pods, in the order of kubeapiserver/options/plugins.go,
// without the ones that call out (webhooks, policies). ResourceQuota follows separately: its plugin
// object answers through worker goroutines, CheckRequest is what these call.
func (w *world) chain(namespace string, more []string) ([]named, error) {
	life, err := lifecycle.NewLifecycle(immortal(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic))
	if err != nil {
		return nil, err
	}
	limits, err := limitranger.NewLimitRanger(nil)
	if err != nil {
		return nil, err
	}
	chain := []named{
		{lifecycle.PluginName, life},
		{limitranger.PluginName, limits},
		{serviceaccount.PluginName, serviceaccount.NewServiceAccount()},
	}
	if w.restricts(namespace) {
		registered := admission.NewPlugins()
		podsecurity.Register(registered)
		security, err := registered.InitPlugin(podsecurity.PluginName, nil, initializer{w})
		if err != nil {
			return nil, err
		}
		chain = append(chain, named{podsecurity.PluginName, security})
	}
	chain = append(chain,
		named{priority.PluginName, priority.NewPlugin()},
		named{defaulttolerationseconds.PluginName, defaulttolerationseconds.NewDefaultTolerationSeconds()},
	)
	for _, name := range more {
		if name != extendedresourcetoleration.PluginName {
			return nil, fmt.Errorf("admission plugin %s is not known here", name)
		}
		registered := admission.NewPlugins()
		extendedresourcetoleration.Register(registered)
		tolerating, err := registered.InitPlugin(name, nil, initializer{w})
		if err != nil {
			return nil, err
		}
		chain = append(chain, named{name, tolerating})
	}
	chain = append(chain, named{runtimeclass.PluginName, runtimeclass.NewRuntimeClass()})
	for _, one := range chain {
		initializer{w}.Initialize(one.plugin)
		if check, ok := one.plugin.(admission.InitializationValidator); ok {
			if err := check.ValidateInitialization(); err != nil {
				return nil, err
			}
		}
	}
	return chain, nil
}

// restricts is true where the namespace carries a pod security label; without one the default
// configuration allows everything.
func (w *world) restricts(namespace string) bool {
	found, err := w.factory.Core().V1().Namespaces().Lister().Get(namespace)
	if err != nil {
		return false
	}
	for key := range found.Labels {
		if strings.HasPrefix(key, "pod-security.kubernetes.io/") {
			return true
		}
	}
	return false
}

type initializer struct{ world *world }

func (i initializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(genericinitializer.WantsFeatures); ok {
		wants.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	}
	if wants, ok := plugin.(interface {
		InspectEffectiveVersion(compatibility.EffectiveVersion)
	}); ok {
		wants.InspectEffectiveVersion(apiservercompatibility.DefaultBuildEffectiveVersion())
	}
	if wants, ok := plugin.(genericinitializer.WantsExternalKubeClientSet); ok {
		wants.SetExternalKubeClientSet(i.world.client)
	}
	if wants, ok := plugin.(genericinitializer.WantsExternalKubeInformerFactory); ok {
		wants.SetExternalKubeInformerFactory(i.world.factory)
	}
}

func refusal(check string, err error) admissionAnswer {
	reply := admissionAnswer{Check: check, Message: err.Error(), Bare: err.Error()}
	if marker := " is forbidden: "; strings.Contains(reply.Message, marker) {
		reply.Bare = reply.Message[strings.Index(reply.Message, marker)+len(marker):]
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		reply.Status = status.Status().Code
		if details := status.Status().Details; details != nil {
			for _, one := range details.Causes {
				reply.Causes = append(reply.Causes, cause{Field: one.Field, Type: string(one.Type), Message: one.Message})
			}
		}
	}
	return reply
}

// askAdmission does what a create request for the pod would go through, up to the storage.
func askAdmission(c *casus) (any, error) {
	external := &v1.Pod{}
	if err := json.Unmarshal(c.raw, external); err != nil {
		return refusal("Decode", err), nil
	}
	if external.Namespace == "" {
		external.Namespace = metav1.NamespaceDefault
	}
	legacyscheme.Scheme.Default(external)
	pod := &api.Pod{}
	if err := legacyscheme.Scheme.Convert(external, pod, nil); err != nil {
		return refusal("Decode", err), nil
	}
	namespace := pod.Namespace
	rest.WipeObjectMetaSystemFields(&pod.ObjectMeta)
	ctx := request.WithUser(request.WithNamespace(context.Background(), namespace), someone)
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIVersion: "v1", Resource: "pods", Namespace: namespace,
	})
	attributes := admission.NewAttributesRecord(pod, nil, podKind, namespace, pod.Name, podResource, "",
		admission.Create, &metav1.CreateOptions{}, true, someone)
	interfaces := admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)

	chain, err := c.world.chain(namespace, c.plugins)
	if err != nil {
		return nil, err
	}
	for _, one := range chain {
		mutating, ok := one.plugin.(admission.MutationInterface)
		if !ok || !mutating.Handles(admission.Create) {
			continue
		}
		if err := mutating.Admit(ctx, attributes, interfaces); err != nil {
			return refusal(one.name, err), nil
		}
	}

	var reply admissionAnswer
	if reply.Mutated, err = externalJSON(pod); err != nil {
		return nil, err
	}
	rest.FillObjectMetaSystemFields(&pod.ObjectMeta)
	if pod.GenerateName != "" && pod.Name == "" {
		pod.Name = pod.GenerateName + "xxxxx"
	}
	if err := rest.BeforeCreate(registrypod.Strategy, ctx, pod); err != nil {
		refused := refusal("Validation", err)
		refused.Mutated = reply.Mutated
		return refused, nil
	}
	if reply.Pod, err = externalJSON(pod); err != nil {
		return nil, err
	}
	// By now a generated name is known: rest.AdmissionToValidateObjectFunc.
	attributes = admission.NewAttributesRecord(pod, nil, podKind, namespace, pod.Name, podResource, "",
		admission.Create, &metav1.CreateOptions{}, true, someone)
	for _, one := range chain {
		validating, ok := one.plugin.(admission.ValidationInterface)
		if !ok || !validating.Handles(admission.Create) {
			continue
		}
		if err := validating.Validate(ctx, attributes, interfaces); err != nil {
			refused := refusal(one.name, err)
			refused.Mutated, refused.Pod = reply.Mutated, reply.Pod
			return refused, nil
		}
	}

	quotas := c.world.quotasOf(namespace)
	after, err := resourcequota.CheckRequest(quotas, attributes, core.NewPodEvaluator(nil, clock.RealClock{}), nil)
	if err != nil {
		refused := refusal(resourcequota.PluginName, err)
		refused.Mutated, refused.Pod = reply.Mutated, reply.Pod
		return refused, nil
	}
	reply.Allowed = true
	reply.Used = map[string]v1.ResourceList{}
	for _, one := range after {
		reply.Used[one.Name] = one.Status.Used
	}
	for reply.Fits = 1; reply.Fits < c.count; reply.Fits++ {
		after, err = resourcequota.CheckRequest(after, attributes, core.NewPodEvaluator(nil, clock.RealClock{}), nil)
		if err != nil {
			reply.Next = refusal(resourcequota.PluginName, err).Bare
			break
		}
	}
	return reply, nil
}

// quotasOf sorts by name; the API server's own order is that of its lister, which is not defined.
func (w *world) quotasOf(namespace string) []v1.ResourceQuota {
	var quotas []v1.ResourceQuota
	for _, one := range w.quotas {
		if one.Namespace == namespace {
			quotas = append(quotas, *one.DeepCopy())
		}
	}
	sort.Slice(quotas, func(i, j int) bool { return quotas[i].Name < quotas[j].Name })
	return quotas
}

func externalJSON(pod *api.Pod) (json.RawMessage, error) {
	external := &v1.Pod{}
	if err := legacyscheme.Scheme.Convert(pod.DeepCopy(), external, nil); err != nil {
		return nil, err
	}
	external.Kind, external.APIVersion = "Pod", "v1"
	return json.Marshal(external)
}

type quotaAnswer struct {
	Usage  v1.ResourceList        `json:"usage"`
	Quotas map[string]quotaMatter `json:"quotas"`
}

type quotaMatter struct {
	Matches   bool     `json:"matches"`
	Scopes    []string `json:"scopes,omitempty"`
	Resources []string `json:"resources,omitempty"`
}

// askQuota says what the pod evaluator charges and which quotas concern the pod as given.
func askQuota(c *casus) (any, error) {
	pod, err := c.storedPod()
	if err != nil {
		return nil, err
	}
	evaluator := core.NewPodEvaluator(nil, clock.RealClock{})
	reply := quotaAnswer{Quotas: map[string]quotaMatter{}}
	if reply.Usage, err = evaluator.Usage(runtime.Object(pod)); err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(pod)
	if err != nil {
		return nil, err
	}
	for _, one := range c.world.quotasOf(accessor.GetNamespace()) {
		matches, err := evaluator.Matches(&one, pod)
		if err != nil {
			return nil, err
		}
		matter := quotaMatter{Matches: matches}
		var hard []v1.ResourceName
		for name := range one.Status.Hard {
			hard = append(hard, name)
		}
		for _, name := range evaluator.MatchingResources(hard) {
			matter.Resources = append(matter.Resources, string(name))
		}
		sort.Strings(matter.Resources)
		reply.Quotas[one.Name] = matter
	}
	return reply, nil
}
