//go:build !kubernetes1.34

package main

// What the packages of the pinned Kubernetes offer and those of 1.34 do not, or elsewhere.

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	quota "k8s.io/apiserver/pkg/quota/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/quota/v1/install"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	securityapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

type (
	schedulerPlugin = fwk.Plugin
	filterPlugin    = fwk.FilterPlugin
	handle          = fwk.Handle
	nominatingInfo  = fwk.NominatingInfo
	draManager      = fwk.SharedDRAManager
)

// immortal makes the set of namespaces that may not be deleted.
var immortal = sets.New[string]

func newDeviceTaintRule() runtime.Object { return &resourcev1.DeviceTaintRule{} }

func (w *world) quotaConfiguration() (quota.Configuration, error) {
	return install.NewQuotaConfigurationForAdmission(w.factory, nil)
}

func podSecurityChecks(emulated *securityapi.Version) (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), emulated)
}

var groups fwk.PodGroupManager

func (w *world) frameworkOptions(ctx context.Context, snapshot *internalcache.Snapshot) ([]frameworkruntime.Option, error) {
	if groups == nil {
		groups = internalcache.New(background, nil, false, false)
	}
	gate := utilfeature.DefaultFeatureGate
	claims := assumecache.NewAssumeCache(logger, w.factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	tracker, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
		EnableDeviceTaintRules:   gate.Enabled(features.DRADeviceTaintRules),
		EnableConsumableCapacity: gate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            w.factory.Resource().V1().ResourceSlices(),
		TaintInformer:            w.factory.Resource().V1().DeviceTaintRules(),
	})
	if err != nil {
		return nil, err
	}
	manager := dynamicresources.NewDRAManager(ctx, claims, tracker, w.factory)
	if classes, ok := manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok && classes != nil {
		if _, err := w.factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(classes); err != nil {
			return nil, err
		}
	}
	return []frameworkruntime.Option{
		frameworkruntime.WithSharedDRAManager(manager),
		frameworkruntime.WithMutableSnapshotLister(snapshot),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(w.factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithPodGroupManager(groups),
	}, nil
}

// skippedOperations is what the kubelet need not ask of the driver for the device.
func skippedOperations(result resourcev1.DeviceRequestAllocationResult) []string {
	var found []string
	for _, one := range result.SkipNodeOperations {
		found = append(found, string(one))
	}
	return found
}

const tellsAllocations = true

// pendingAllocation is what Reserve has given to a claim, nil for nothing.
func pendingAllocation(manager draManager, claim types.UID) *resourcev1.AllocationResult {
	return manager.ResourceClaims().GetPendingAllocation(claim)
}

func (s *staticInformer) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (synced) HasSyncedChecker() cache.DoneChecker            { return synced{} }
