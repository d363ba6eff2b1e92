package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiservercompatibility "k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/resource/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	schedulinghelpers "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
)

// kinds lists what a question may hold. Anything else is refused: a typo must not read as "none".
var kinds = map[string]func() runtime.Object{
	"Node":                  func() runtime.Object { return &v1.Node{} },
	"Pod":                   func() runtime.Object { return &v1.Pod{} },
	"Namespace":             func() runtime.Object { return &v1.Namespace{} },
	"ResourceQuota":         func() runtime.Object { return &v1.ResourceQuota{} },
	"LimitRange":            func() runtime.Object { return &v1.LimitRange{} },
	"ServiceAccount":        func() runtime.Object { return &v1.ServiceAccount{} },
	"PersistentVolume":      func() runtime.Object { return &v1.PersistentVolume{} },
	"PersistentVolumeClaim": func() runtime.Object { return &v1.PersistentVolumeClaim{} },
	"PodDisruptionBudget":   func() runtime.Object { return &policyv1.PodDisruptionBudget{} },
	"PriorityClass":         func() runtime.Object { return &schedulingv1.PriorityClass{} },
	"RuntimeClass":          func() runtime.Object { return &nodev1.RuntimeClass{} },
	"StorageClass":          func() runtime.Object { return &storagev1.StorageClass{} },
	"CSINode":               func() runtime.Object { return &storagev1.CSINode{} },
	"CSIDriver":             func() runtime.Object { return &storagev1.CSIDriver{} },
	"CSIStorageCapacity":    func() runtime.Object { return &storagev1.CSIStorageCapacity{} },
	"ResourceSlice":         func() runtime.Object { return &resourcev1.ResourceSlice{} },
	"ResourceClaim":         func() runtime.Object { return &resourcev1.ResourceClaim{} },
	"DeviceClass":           func() runtime.Object { return &resourcev1.DeviceClass{} },
	"DeviceTaintRule":       func() runtime.Object { return &resourcev1.DeviceTaintRule{} },
}

// world holds the objects of one question behind informers that are complete before anybody asks.
type world struct {
	factory informers.SharedInformerFactory
	client  kubernetes.Interface
	nodes   []*v1.Node
	pods    []*v1.Pod // as the scheduler sees them: not Succeeded, not Failed
	quotas  []*v1.ResourceQuota
	budgets []*policyv1.PodDisruptionBudget
}

// noObjects answers every live lookup with "not found". For the default service account that is not
// said in the way that the admission plugin waits and asks nine times more.
var noObjects = func() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("get", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.GetAction).GetName()
		if name != "default" {
			return false, nil, nil
		}
		return true, nil, fmt.Errorf("serviceaccount %q not found", name)
	})
	return client
}()

// everywhere lists what the API server itself creates in every cluster.
func everywhere() []runtime.Object {
	var objects []runtime.Object
	for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
		objects = append(objects, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, class := range schedulinghelpers.SystemPriorityClasses() {
		defaulted := class.DeepCopy()
		legacyscheme.Scheme.Default(defaulted)
		objects = append(objects, defaulted)
	}
	return objects
}

func newWorld(raw []json.RawMessage) (*world, error) {
	w := &world{client: noObjects}
	w.factory = informers.NewSharedInformerFactory(noObjects, 0)
	stores := map[string]*staticInformer{}
	for kind, empty := range kinds {
		informer := &staticInformer{indexer: sortedIndexer{cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}}
		stores[kind] = informer
		w.factory.InformerFor(empty(), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
			return informer
		})
	}
	for _, object := range everywhere() {
		kind := reflect.TypeOf(object).Elem().Name()
		if err := stores[kind].indexer.Add(object); err != nil {
			return nil, err
		}
	}
	for _, document := range raw {
		var head struct {
			Kind string `json:"kind"`
		}
		if err := json.Unmarshal(document, &head); err != nil {
			return nil, fmt.Errorf("object: %w", err)
		}
		empty, known := kinds[head.Kind]
		if !known {
			return nil, fmt.Errorf("object of unknown kind %q", head.Kind)
		}
		object := empty()
		if err := json.Unmarshal(document, object); err != nil {
			return nil, fmt.Errorf("%s: %w", head.Kind, err)
		}
		legacyscheme.Scheme.Default(object)
		switch o := object.(type) {
		case *v1.Node:
			w.nodes = append(w.nodes, o)
		case *v1.Pod:
			if o.Status.Phase == v1.PodSucceeded || o.Status.Phase == v1.PodFailed {
				continue
			}
			w.pods = append(w.pods, o)
		case *v1.ResourceQuota:
			w.quotas = append(w.quotas, o)
		case *policyv1.PodDisruptionBudget:
			w.budgets = append(w.budgets, o)
		}
		if err := stores[head.Kind].indexer.Add(object); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// storedPod decodes and defaults the asking pod: what the scheduler would see of it.
func (c *casus) storedPod() (*v1.Pod, error) {
	if c.pod != nil {
		return c.pod, nil
	}
	pod := &v1.Pod{}
	if err := json.Unmarshal(c.raw, pod); err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	if pod.Namespace == "" {
		pod.Namespace = v1.NamespaceDefault
	}
	if pod.UID == "" {
		pod.UID = "the-asking-pod"
	}
	legacyscheme.Scheme.Default(pod)
	c.pod = pod
	return pod, nil
}

func version() map[string]string {
	return map[string]string{"kubernetes": apiservercompatibility.DefaultBuildEffectiveVersion().EmulationVersion().String()}
}

// sortedIndexer lists by key. Kubernetes' own order is that of a Go map: a case with two LimitRanges
// would have two right answers. Ours sorts by name too.
type sortedIndexer struct{ cache.Indexer }

func byKey(objects []any) []any {
	sort.Slice(objects, func(i, j int) bool {
		left, _ := cache.MetaNamespaceKeyFunc(objects[i])
		right, _ := cache.MetaNamespaceKeyFunc(objects[j])
		return left < right
	})
	return objects
}

func (s sortedIndexer) List() []any { return byKey(s.Indexer.List()) }

func (s sortedIndexer) Index(name string, object any) ([]any, error) {
	found, err := s.Indexer.Index(name, object)
	return byKey(found), err
}

func (s sortedIndexer) ByIndex(name, value string) ([]any, error) {
	found, err := s.Indexer.ByIndex(name, value)
	return byKey(found), err
}

// staticInformer is an informer whose list is complete from the start and never changes. A real one
// fills asynchronously: caches behind it would sometimes be asked while still empty.
type staticInformer struct {
	cache.SharedIndexInformer // nil: what is not overridden below is not used
	indexer                   cache.Indexer
}

func (s *staticInformer) GetIndexer() cache.Indexer { return s.indexer }
func (s *staticInformer) GetStore() cache.Store     { return s.indexer }
func (s *staticInformer) HasSynced() bool           { return true }
func (s *staticInformer) HasSyncedChecker() cache.DoneChecker {
	return synced{}
}
func (s *staticInformer) LastSyncResourceVersion() string { return "1" }
func (s *staticInformer) IsStopped() bool                 { return false }
func (s *staticInformer) AddIndexers(indexers cache.Indexers) error {
	return s.indexer.AddIndexers(indexers)
}
func (s *staticInformer) SetTransform(cache.TransformFunc) error             { return nil }
func (s *staticInformer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }

func (s *staticInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range s.indexer.List() {
		handler.OnAdd(object, true)
	}
	return synced{}, nil
}

func (s *staticInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(handler)
}

func (s *staticInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(handler)
}

func (s *staticInformer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

type synced struct{}

var done = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (synced) HasSynced() bool                     { return true }
func (synced) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (synced) Name() string                        { return "static" }
func (synced) Done() <-chan struct{}               { return done }
