// Fields prints the fields of Kubernetes' own API types, as its JSON decoder sees them.
//
// Read by reflection from the scheme of client-go, so that a new field or a renamed type shows as a
// difference of the printed text. One JSON object:
//
//	kinds  "apps/v1 Deployment" -> the type that its objects are decoded into
//	types  of a struct: field -> type, "T@A.B" where the field is promoted from the embedded structs A.B;
//	       of any other named type: what it is made of, "custom" where it reads its JSON itself
//
// A type is written as Go prints it, with the group in front of the version: "[]core/v1.Container". One
// leading pointer is left out: the decoder follows it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// applied are the kinds that people apply and that are read or judged.
var applied = strings.Fields(`
Pod PodTemplate Deployment ReplicaSet StatefulSet DaemonSet Job CronJob ReplicationController
ResourceClaim ResourceClaimTemplate DeviceClass ResourceSlice DeviceTaintRule ResourcePoolStatusRequest
ResourceQuota LimitRange Namespace PriorityClass RuntimeClass PodDisruptionBudget
PersistentVolumeClaim PersistentVolume StorageClass Service ServiceAccount ConfigMap Secret Node
ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
MutatingAdmissionPolicy MutatingAdmissionPolicyBinding
ValidatingWebhookConfiguration MutatingWebhookConfiguration
`)

// gone are versions that no API server serves any more, so that nothing is decoded into their types.
var gone = map[string]bool{
	"apps/v1beta1": true, "apps/v1beta2": true, "extensions/v1beta1": true, "batch/v1beta1": true,
	"node.k8s.io/v1alpha1": true, "node.k8s.io/v1beta1": true, "policy/v1beta1": true,
	"scheduling.k8s.io/v1alpha1": true, "scheduling.k8s.io/v1beta1": true, "storage.k8s.io/v1beta1": true,
}

var unmarshaler = reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()

type table struct {
	Kinds map[string]string `json:"kinds"`
	Types map[string]any    `json:"types"`
}

func main() {
	wanted := map[string]bool{}
	for _, kind := range applied {
		wanted[kind] = true
	}
	found := table{Kinds: map[string]string{}, Types: map[string]any{}}
	for gvk, made := range scheme.Scheme.AllKnownTypes() {
		version := gvk.GroupVersion().String()
		_, isObject := reflect.New(made).Interface().(metav1.Object)
		if isObject && wanted[gvk.Kind] && !gone[version] {
			found.Kinds[version+" "+gvk.Kind] = found.name(made)
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	if err := encoder.Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// name writes a type and enters it, and all that it is made of, into the table.
func (t *table) name(of reflect.Type) string {
	if of.Name() == "" {
		return t.composed(of)
	}
	if of.PkgPath() == "" {
		return of.Name()
	}
	id := short(of.PkgPath()) + "." + of.Name()
	if _, there := t.Types[id]; there {
		return id
	}
	switch {
	case reflect.PointerTo(of).Implements(unmarshaler):
		t.Types[id] = "custom"
	case of.Kind() == reflect.Struct:
		fields := map[string]string{}
		t.Types[id] = fields // before its fields: types may hold themselves
		t.fields(of, "", fields)
	default:
		t.Types[id] = "" // likewise
		t.Types[id] = t.composed(of)
	}
	return id
}

func (t *table) composed(of reflect.Type) string {
	switch of.Kind() {
	case reflect.Pointer:
		return "*" + t.name(of.Elem())
	case reflect.Slice:
		return "[]" + t.name(of.Elem())
	case reflect.Map:
		return "map[" + t.name(of.Key()) + "]" + t.name(of.Elem())
	case reflect.Struct, reflect.Interface, reflect.Array, reflect.Func, reflect.Chan:
		panic("the table has no way to say " + of.String())
	}
	return of.Kind().String()
}

func (t *table) fields(of reflect.Type, through string, into map[string]string) {
	for number := range of.NumField() {
		field := of.Field(number)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !field.IsExported() {
			continue
		}
		if strings.Contains(options, "string") {
			panic("the table has no way to say that a field is quoted: " + field.Name)
		}
		if field.Anonymous && name == "" {
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			t.fields(embedded, strings.TrimPrefix(through+"."+field.Name, "."), into)
			continue
		}
		if name == "" {
			name = field.Name
		}
		if _, twice := into[name]; twice {
			panic("two fields are called " + name + " in " + of.String())
		}
		into[name] = strings.TrimPrefix(t.name(field.Type), "*")
		if through != "" {
			into[name] += "@" + through
		}
	}
}

// short is the part of a package's path that tells packages of the same name apart.
func short(path string) string {
	parts := strings.Split(path, "/")
	last := parts[len(parts)-1]
	if len(last) > 1 && last[0] == 'v' && last[1] >= '0' && last[1] <= '9' {
		return parts[len(parts)-2] + "/" + last
	}
	return last
}
