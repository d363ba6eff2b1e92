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
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	api "k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	registrypod "k8s.io/kubernetes/pkg/registry/core/pod"
	schemapkg "sigs.k8s.io/structured-merge-diff/v6/schema"
)

func init() {
	questions["policies"] = askPolicies
	questions["fields"] = askFields
}

// policyCase is a pod and the admission policies of its cluster, in the place of a pod.
type policyCase struct {
	Pod              json.RawMessage                                             `json:"pod"`
	Policies         []*admissionregistrationv1.ValidatingAdmissionPolicy        `json:"policies"`
	Bindings         []*admissionregistrationv1.ValidatingAdmissionPolicyBinding `json:"bindings"`
	MutatingPolicies []*admissionregistrationv1.MutatingAdmissionPolicy          `json:"mutatingPolicies"`
	MutatingBindings []*admissionregistrationv1.MutatingAdmissionPolicyBinding   `json:"mutatingBindings"`
	Params           []*v1.ConfigMap                                             `json:"params"`
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

// askPolicies sends a create of the pod through the dispatchers of both kinds of admission policy,
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
	external := &v1.Pod{}
	if err := json.Unmarshal(asked.Pod, external); err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(external)
	pod := &api.Pod{}
	if err := legacyscheme.Scheme.Convert(external, pod, nil); err != nil {
		return nil, err
	}
	namespace := pod.Namespace
	rest.WipeObjectMetaSystemFields(&pod.ObjectMeta)
	recorder := &warnings{}
	ctx := request.WithUser(request.WithNamespace(context.Background(), namespace), someone)
	ctx = warning.WithWarningRecorder(ctx, recorder)
	interfaces := admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)
	matcher := matching.NewMatcher(c.world.factory.Core().V1().Namespaces().Lister(), c.world.client)

	annotated := &annotations{}
	attributes := func() admission.Attributes {
		return annotated.watching(admission.NewAttributesRecord(pod, nil, podKind, namespace, pod.Name, podResource, "",
			admission.Create, &metav1.CreateOptions{}, true, someone))
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

	rest.FillObjectMetaSystemFields(&pod.ObjectMeta)
	if pod.GenerateName != "" && pod.Name == "" {
		pod.Name = pod.GenerateName + "xxxxx"
	}
	registrypod.Strategy.PrepareForCreate(ctx, pod)
	stored, err := externalJSON(pod)
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

func paramsOf(kind *admissionregistrationv1.ParamKind, params []*v1.ConfigMap) (informers.GenericInformer, meta.RESTScope, error) {
	if kind == nil {
		return nil, nil, nil
	}
	if kind.Kind != "ConfigMap" {
		return nil, nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", schema.FromAPIVersionAndKind(kind.APIVersion, kind.Kind))
	}
	informer := &staticInformer{indexer: sortedIndexer{cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}}
	for _, one := range params {
		_ = informer.indexer.Add(one)
	}
	return genericInformer{informer}, meta.RESTScopeNamespace, nil
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
		hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = paramsOf(policy.Spec.ParamKind, asked.Params)
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
		hook.ParamInformer, hook.ParamScope, hook.ConfigurationError = paramsOf(policy.Spec.ParamKind, asked.Params)
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
		short := strings.TrimPrefix(one.Name, "io.k8s.api.")
		parts := strings.Split(short, ".")
		if len(parts) != 3 || one.Map == nil || parts[0] != "core" {
			continue
		}
		if one.Map.ElementRelationship == schemapkg.Atomic {
			reply.Lists["v1."+parts[2]] = "atomic"
		}
		for _, field := range one.Map.Fields {
			atom, _ := typed.Schema().Resolve(field.Type)
			name := "v1." + parts[2] + "." + field.Name
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
