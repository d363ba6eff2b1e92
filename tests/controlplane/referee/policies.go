//go:build !kubernetes1.34

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/matching"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	registrypod "k8s.io/kubernetes/pkg/registry/core/pod"
	schemapkg "sigs.k8s.io/structured-merge-diff/v6/schema"
)

func init() {
	questions["policies"] = askPolicies
	questions["fields"] = askFields
}

// policyCase is an object to be created (a pod or a workload), who creates it, and the admission
// policies of the cluster, in the place of a pod.
type policyCase struct {
	Pod              json.RawMessage                                             `json:"pod"`
	User             *authenticationv1.UserInfo                                  `json:"user"`
	Policies         []*admissionregistrationv1.ValidatingAdmissionPolicy        `json:"policies"`
	Bindings         []*admissionregistrationv1.ValidatingAdmissionPolicyBinding `json:"bindings"`
	MutatingPolicies []*admissionregistrationv1.MutatingAdmissionPolicy          `json:"mutatingPolicies"`
	MutatingBindings []*admissionregistrationv1.MutatingAdmissionPolicyBinding   `json:"mutatingBindings"`
	Params           []json.RawMessage                                           `json:"params"`
	// ParamKinds are the kinds that the API server serves besides ConfigMap.
	ParamKinds []servedKind `json:"paramKinds"`
}

type servedKind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

// createdKind is a kind of object that a policy may be asked about.
type createdKind struct {
	external, internal func() runtime.Object
	resource           schema.GroupVersionResource
	strategy           rest.RESTCreateStrategy
}

var createdKinds = map[string]createdKind{
	"Pod": {func() runtime.Object { return &v1.Pod{} }, func() runtime.Object { return &api.Pod{} },
		podResource, registrypod.Strategy},
	"Deployment": {func() runtime.Object { return &appsv1.Deployment{} }, func() runtime.Object { return &apps.Deployment{} },
		appsv1.SchemeGroupVersion.WithResource("deployments"), deployment.Strategy},
	"ReplicaSet": {func() runtime.Object { return &appsv1.ReplicaSet{} }, func() runtime.Object { return &apps.ReplicaSet{} },
		appsv1.SchemeGroupVersion.WithResource("replicasets"), replicaset.Strategy},
	"StatefulSet": {func() runtime.Object { return &appsv1.StatefulSet{} }, func() runtime.Object { return &apps.StatefulSet{} },
		appsv1.SchemeGroupVersion.WithResource("statefulsets"), statefulset.Strategy},
	"DaemonSet": {func() runtime.Object { return &appsv1.DaemonSet{} }, func() runtime.Object { return &apps.DaemonSet{} },
		appsv1.SchemeGroupVersion.WithResource("daemonsets"), daemonset.Strategy},
	"Job": {func() runtime.Object { return &batchv1.Job{} }, func() runtime.Object { return &batch.Job{} },
		batchv1.SchemeGroupVersion.WithResource("jobs"), job.Strategy},
	"CronJob": {func() runtime.Object { return &batchv1.CronJob{} }, func() runtime.Object { return &batch.CronJob{} },
		batchv1.SchemeGroupVersion.WithResource("cronjobs"), cronjob.Strategy},
}

// created is one object on its way into the store.
type created struct {
	createdKind
	kind   schema.GroupVersionKind
	object runtime.Object
	meta   metav1.Object
}

func (asked *policyCase) created() (*created, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(asked.Pod, &head); err != nil {
		return nil, err
	}
	known, ok := createdKinds[head.Kind]
	if !ok {
		return nil, fmt.Errorf("no policy is asked about a %q here", head.Kind)
	}
	external := known.external()
	if err := json.Unmarshal(asked.Pod, external); err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(external)
	made := &created{createdKind: known, kind: known.resource.GroupVersion().WithKind(head.Kind), object: known.internal()}
	if err := legacyscheme.Scheme.Convert(external, made.object, nil); err != nil {
		return nil, err
	}
	accessor, err := meta.Accessor(made.object)
	if err != nil {
		return nil, err
	}
	made.meta = accessor
	rest.WipeObjectMetaSystemFields(accessor)
	return made, nil
}

// prepare does what the registry does between the mutating and the validating plugins.
func (c *created) prepare(ctx context.Context) {
	rest.FillObjectMetaSystemFields(c.meta)
	c.meta.SetUID("?")
	if c.meta.GetGenerateName() != "" && c.meta.GetName() == "" {
		c.meta.SetName(c.meta.GetGenerateName() + "xxxxx")
	}
	c.strategy.PrepareForCreate(ctx, c.object)
}

func (c *created) json() (json.RawMessage, error) {
	external := c.external()
	if err := legacyscheme.Scheme.Convert(c.object.DeepCopyObject(), external, nil); err != nil {
		return nil, err
	}
	external.GetObjectKind().SetGroupVersionKind(c.kind)
	return json.Marshal(external)
}

func (asked *policyCase) user() user.Info {
	if asked.User == nil {
		return someone
	}
	extra := map[string][]string{}
	for key, values := range asked.User.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: asked.User.Username, UID: asked.User.UID, Groups: asked.User.Groups, Extra: extra}
}

type policyReply struct {
	Allowed  bool              `json:"allowed"`
	Message  string            `json:"message,omitempty"`
	Reason   string            `json:"reason,omitempty"`
	Stage    string            `json:"stage,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Audit    map[string]string `json:"audit,omitempty"`
	Pod      json.RawMessage   `json:"pod,omitempty"`
}

// askPolicies sends the create of an object through the dispatchers of both kinds of admission policy,
// with the API server's own defaults and generated fields around them, and no other plugin.
func askPolicies(c *casus) (any, error) {
	var asked policyCase
	if err := json.Unmarshal(c.raw, &asked); err != nil {
		return nil, err
	}
	for _, one := range asked.Policies {
		legacyscheme.Scheme.Default(one)
	}
	for _, one := range asked.Bindings {
		legacyscheme.Scheme.Default(one)
	}
	for _, one := range asked.MutatingPolicies {
		legacyscheme.Scheme.Default(one)
	}
	for _, one := range asked.MutatingBindings {
		legacyscheme.Scheme.Default(one)
	}
	made, err := asked.created()
	if err != nil {
		return nil, err
	}
	namespace, who := made.meta.GetNamespace(), asked.user()
	recorder := &warnings{}
	ctx := request.WithUser(request.WithNamespace(context.Background(), namespace), who)
	ctx = warning.WithWarningRecorder(ctx, recorder)
	interfaces := admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)
	matcher := matching.NewMatcher(c.world.factory.Core().V1().Namespaces().Lister(), c.world.client)

	annotated := &annotations{}
	attributes := func() admission.Attributes {
		return annotated.watching(admission.NewAttributesRecord(made.object, nil, made.kind, namespace, made.meta.GetName(),
			made.resource, "", admission.Create, &metav1.CreateOptions{}, false, who))
	}
	reply := policyReply{}
	refused := func(stage string, err error) (any, error) {
		full := refusal(stage, err)
		reply.Message, reply.Stage = full.Bare, stage
		if status, ok := err.(interface{ Status() metav1.Status }); ok {
			reply.Reason = string(status.Status().Reason)
		}
		reply.Warnings, reply.Audit = recorder.texts, annotated.found
		return reply, nil
	}

	mutator := mutating.NewDispatcher(nil, matcher, converters{})
	attr := attributes()
	for round := 0; round < 2; round++ {
		if err := mutator.Dispatch(ctx, attr, interfaces, mutatingHooks(&asked)); err != nil {
			return refused("Mutating", err)
		}
		if !attr.GetReinvocationContext().ShouldReinvoke() {
			break
		}
		attr.GetReinvocationContext().SetIsReinvoke()
	}

	made.prepare(ctx)
	stored, err := made.json()
	if err != nil {
		return nil, err
	}
	reply.Pod = stored
	validator := validating.NewDispatcher(nil, generic.NewPolicyMatcher(matcher))
	if err := validator.Dispatch(ctx, attributes(), interfaces, validatingHooks(&asked)); err != nil {
		return refused("Validating", err)
	}
	reply.Allowed = true
	reply.Warnings, reply.Audit = recorder.texts, annotated.found
	return reply, nil
}

type warnings struct{ texts []string }

func (w *warnings) AddWarning(_, text string) { w.texts = append(w.texts, text) }

// annotations keeps what a plugin would write into the audit log.
type annotations struct{ found map[string]string }

type watchedAttributes struct {
	admission.Attributes
	kept *annotations
}

func (a *annotations) watching(inner admission.Attributes) admission.Attributes {
	return &watchedAttributes{inner, a}
}

func (w *watchedAttributes) AddAnnotation(key, value string) error {
	if w.kept.found == nil {
		w.kept.found = map[string]string{}
	}
	w.kept.found[key] = value
	return w.Attributes.AddAnnotation(key, value)
}

type converters struct{}

var staticConverter = applyconfigurations.NewTypeConverter(legacyscheme.Scheme)

func (converters) GetTypeConverter(schema.GroupVersionKind) managedfields.TypeConverter {
	return staticConverter
}
func (converters) Run(context.Context) {}

var _ patch.TypeConverterManager = converters{}

func (asked *policyCase) paramsOf(kind *admissionregistrationv1.ParamKind) (informers.GenericInformer, meta.RESTScope, error) {
	if kind == nil {
		return nil, nil, nil
	}
	scope := meta.RESTScopeNamespace
	if kind.APIVersion != "v1" || kind.Kind != "ConfigMap" {
		served := false
		for _, one := range asked.ParamKinds {
			if one.APIVersion == kind.APIVersion && one.Kind == kind.Kind {
				served = true
				if !one.Namespaced {
					scope = meta.RESTScopeRoot
				}
			}
		}
		if !served { // as policySource.ensureParamsForPolicyLocked says it
			return nil, nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
		}
	}
	informer := &staticInformer{indexer: sortedIndexer{cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}}
	for _, raw := range asked.Params {
		param, err := paramOf(raw, kind)
		if err != nil {
			return nil, nil, err
		}
		if param != nil {
			_ = informer.indexer.Add(param)
		}
	}
	return genericInformer{informer}, scope, nil
}

// paramOf is the object as an informer holds it, nil where it is of another kind.
func paramOf(raw json.RawMessage, kind *admissionregistrationv1.ParamKind) (runtime.Object, error) {
	var head metav1.TypeMeta
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	if head.APIVersion != kind.APIVersion || head.Kind != kind.Kind {
		return nil, nil
	}
	if head.Kind == "ConfigMap" && head.APIVersion == "v1" {
		found := &v1.ConfigMap{}
		err := json.Unmarshal(raw, found)
		found.TypeMeta = metav1.TypeMeta{}
		return found, err
	}
	found := &unstructured.Unstructured{}
	return found, json.Unmarshal(raw, &found.Object)
}

type genericInformer struct{ informer *staticInformer }

func (g genericInformer) Informer() cache.SharedIndexInformer { return g.informer }
func (g genericInformer) Lister() cache.GenericLister {
	return cache.NewGenericLister(g.informer.indexer, schema.GroupResource{Resource: "configmaps"})
}

func mutatingHooks(asked *policyCase) []mutating.PolicyHook {
	var hooks []mutating.PolicyHook
	for _, policy := range asked.MutatingPolicies {
		hook := mutating.PolicyHook{Policy: policy, Evaluator: compileMutating(policy)}
		for _, binding := range asked.MutatingBindings {
			if binding.Spec.PolicyName == policy.Name {
				hook.Bindings = append(hook.Bindings, binding)
			}
		}
		if len(hook.Bindings) == 0 {
			continue // policySource starts from the bindings
		}
		hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = asked.paramsOf(policy.Spec.ParamKind)
		hooks = append(hooks, hook)
	}
	return hooks
}

func validatingHooks(asked *policyCase) []validating.PolicyHook {
	var hooks []validating.PolicyHook
	for _, policy := range asked.Policies {
		hook := validating.PolicyHook{Policy: policy, Evaluator: compileValidating(policy)}
		for _, binding := range asked.Bindings {
			if binding.Spec.PolicyName == policy.Name {
				hook.Bindings = append(hook.Bindings, binding)
			}
		}
		if len(hook.Bindings) == 0 {
			continue // policySource starts from the bindings
		}
		hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = asked.paramsOf(policy.Spec.ParamKind)
		hooks = append(hooks, hook)
	}
	return hooks
}

func composited() *plugincel.CompositedCompiler {
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		panic(err)
	}
	return compiler
}

func conditions(compiler *plugincel.CompositedCompiler, given []admissionregistrationv1.MatchCondition, options plugincel.OptionalVariableDeclarations,
	failure *admissionregistrationv1.FailurePolicyType, name string) matchconditions.Matcher {
	if len(given) == 0 {
		return nil
	}
	accessors := make([]plugincel.ExpressionAccessor, len(given))
	for i := range given {
		accessors[i] = (*matchconditions.MatchCondition)(&given[i])
	}
	return matchconditions.NewMatcher(compiler.CompileCondition(accessors, options, environment.StoredExpressions), failure, "policy", "validate", name)
}

func compileValidating(policy *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	spec := policy.Spec
	options := plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	plain := plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil}
	compiler := composited()
	var variables []plugincel.NamedExpressionAccessor
	for _, one := range spec.Variables {
		variables = append(variables, &validating.Variable{Name: one.Name, Expression: one.Expression})
	}
	compiler.CompileAndStoreVariables(variables, options, environment.StoredExpressions)
	matcher := conditions(compiler, spec.MatchConditions, options, spec.FailurePolicy, policy.Name)
	checks := make([]plugincel.ExpressionAccessor, len(spec.Validations))
	messages := make([]plugincel.ExpressionAccessor, len(spec.Validations))
	for i, one := range spec.Validations {
		checks[i] = &validating.ValidationCondition{Expression: one.Expression, Message: one.Message, Reason: one.Reason}
		if one.MessageExpression != "" {
			messages[i] = &validating.MessageExpressionCondition{MessageExpression: one.MessageExpression}
		}
	}
	audits := make([]plugincel.ExpressionAccessor, len(spec.AuditAnnotations))
	for i, one := range spec.AuditAnnotations {
		audits[i] = &validating.AuditAnnotationCondition{Key: one.Key, ValueExpression: one.ValueExpression}
	}
	return validating.NewValidator(
		compiler.CompileCondition(checks, options, environment.StoredExpressions), matcher,
		compiler.CompileCondition(audits, options, environment.StoredExpressions),
		compiler.CompileCondition(messages, plain, environment.StoredExpressions), spec.FailurePolicy, nil)
}

func compileMutating(policy *admissionregistrationv1.MutatingAdmissionPolicy) mutating.PolicyEvaluator {
	spec := policy.Spec
	options := plugincel.OptionalVariableDeclarations{HasParams: spec.ParamKind != nil, HasAuthorizer: true}
	compiler := composited()
	var variables []plugincel.NamedExpressionAccessor
	for _, one := range spec.Variables {
		variables = append(variables, &validating.Variable{Name: one.Name, Expression: one.Expression})
	}
	compiler.CompileAndStoreVariables(variables, options, environment.StoredExpressions)
	matcher := conditions(compiler, spec.MatchConditions, options, spec.FailurePolicy, policy.Name)
	patching := options
	patching.HasPatchTypes = true
	var patchers []patch.Patcher
	for _, one := range spec.Mutations {
		if one.PatchType == admissionregistrationv1.PatchTypeJSONPatch && one.JSONPatch != nil {
			accessor := &patch.JSONPatchCondition{Expression: one.JSONPatch.Expression}
			patchers = append(patchers, patch.NewJSONPatcher(compiler.CompileMutatingEvaluator(accessor, patching, environment.StoredExpressions)))
		}
		if one.PatchType == admissionregistrationv1.PatchTypeApplyConfiguration && one.ApplyConfiguration != nil {
			accessor := &patch.ApplyConfigurationCondition{Expression: one.ApplyConfiguration.Expression}
			patchers = append(patchers, patch.NewApplyConfigurationPatcher(compiler.CompileMutatingEvaluator(accessor, patching, environment.StoredExpressions)))
		}
	}
	return mutating.PolicyEvaluator{Matcher: matcher, Mutators: patchers, CompositedCompiler: compiler}
}

// -- the fields of API types --------------------------------------------------------------------------

type fieldsReply struct {
	// Types maps a Go type to its JSON fields: "?" where an empty value is left out, "*" for a
	// pointer, "[]" and "{}" for a list and a map, then the type of a value.
	Types map[string]map[string]string `json:"types"`
	// Lists maps "type.field" to how server-side apply merges it: "atomic", "set", or its keys.
	Lists map[string]string `json:"lists"`
}

func askFields(*casus) (any, error) {
	reply := fieldsReply{Types: map[string]map[string]string{}, Lists: map[string]string{}}
	for _, one := range []any{v1.Pod{}, v1.Namespace{}, appsv1.Deployment{}, appsv1.StatefulSet{}, appsv1.DaemonSet{},
		appsv1.ReplicaSet{}, batchv1.Job{}, batchv1.CronJob{}} {
		walkFields(reply, reflect.TypeOf(one))
	}
	typed, err := staticConverter.ObjectToTyped(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}})
	if err != nil {
		return nil, err
	}
	for _, one := range typed.Schema().Types {
		prefix := typeName(one.Name)
		if prefix == "" || one.Map == nil {
			continue
		}
		if one.Map.ElementRelationship == schemapkg.Atomic {
			reply.Lists[prefix] = "atomic"
		}
		for _, field := range one.Map.Fields {
			atom, _ := typed.Schema().Resolve(field.Type)
			name := prefix + "." + field.Name
			if atom.List != nil {
				switch {
				case atom.List.ElementRelationship == schemapkg.Atomic:
					reply.Lists[name] = "atomic"
				case len(atom.List.Keys) > 0:
					reply.Lists[name] = strings.Join(atom.List.Keys, ",")
				default:
					reply.Lists[name] = "set"
				}
			} else if atom.Map != nil && atom.Map.ElementRelationship == schemapkg.Atomic && field.Type.NamedType == nil {
				reply.Lists[name] = "atomic"
			}
		}
	}
	return reply, nil
}

// typeName is what walkFields calls the type that the schema of server-side apply names so.
func typeName(name string) string {
	if short, found := strings.CutPrefix(name, "io.k8s.apimachinery.pkg.apis.meta.v1."); found {
		return "meta." + short
	}
	parts := strings.Split(strings.TrimPrefix(name, "io.k8s.api."), ".")
	switch {
	case len(parts) != 3:
		return ""
	case parts[0] == "core":
		return "v1." + parts[2]
	case parts[0] == "apps" && parts[1] == "v1", parts[0] == "batch" && parts[1] == "v1":
		return parts[0] + "." + parts[2]
	}
	return ""
}

func walkFields(reply fieldsReply, t reflect.Type) string {
	switch t {
	case reflect.TypeOf(resource.Quantity{}):
		return "quantity"
	case reflect.TypeOf(metav1.Time{}), reflect.TypeOf(metav1.MicroTime{}):
		return "time"
	case reflect.TypeOf(intstr.IntOrString{}):
		return "any"
	case reflect.TypeOf(runtime.RawExtension{}), reflect.TypeOf(metav1.FieldsV1{}):
		return "any"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + walkFields(reply, t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + walkFields(reply, t.Elem())
	case reflect.Map:
		return "{}" + walkFields(reply, t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int32, reflect.Int64, reflect.Int:
		return "int"
	case reflect.Struct:
		name := t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:] + "." + t.Name()
		if strings.Contains(t.PkgPath(), "apimachinery") {
			name = "meta." + t.Name()
		} else if group := strings.Split(t.PkgPath(), "/"); group[len(group)-2] != "core" {
			name = group[len(group)-2] + "." + t.Name()
		}
		if _, known := reply.Types[name]; known {
			return name
		}
		fields := map[string]string{}
		reply.Types[name] = fields
		var add func(reflect.Type)
		add = func(t reflect.Type) {
			for i := range t.NumField() {
				field := t.Field(i)
				tag := strings.Split(field.Tag.Get("json"), ",")
				if field.Anonymous && tag[0] == "" {
					add(field.Type)
					continue
				}
				if tag[0] == "" || tag[0] == "-" {
					continue
				}
				mark := ""
				for _, option := range tag[1:] {
					if option == "omitempty" {
						mark += "?"
					}
					if option == "omitzero" {
						mark += "!"
					}
				}
				fields[tag[0]] = mark + walkFields(reply, field.Type)
			}
		}
		add(t)
		return name
	}
	return "any"
}
