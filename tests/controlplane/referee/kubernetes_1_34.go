//go:build kubernetes1.34

package main

import (
	"context"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	quota "k8s.io/apiserver/pkg/quota/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/quota/v1/install"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
	securityapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

type (
	schedulerPlugin = framework.Plugin
	filterPlugin    = framework.FilterPlugin
	handle          = framework.Handle
	nominatingInfo  = framework.NominatingInfo
	draManager      = framework.SharedDRAManager
)

// immortal makes the set of namespaces that may not be deleted.
var immortal = sets.NewString

func newDeviceTaintRule() runtime.Object { return &resourcev1alpha3.DeviceTaintRule{} }

func (w *world) quotaConfiguration() (quota.Configuration, error) {
	return install.NewQuotaConfigurationForAdmission(), nil
}

// podSecurityChecks plays no older version: those of 1.34 know only their own.
func podSecurityChecks(*securityapi.Version) (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks())
}

// skippedOperations: 1.34 has none.
func skippedOperations(resourcev1.DeviceRequestAllocationResult) []string { return nil }

const tellsAllocations = false

// pendingAllocation: 1.34 does not tell what Reserve has given to a claim.
func pendingAllocation(draManager, types.UID) *resourcev1.AllocationResult {
	return nil
}

func (w *world) frameworkOptions(ctx context.Context, _ *internalcache.Snapshot) ([]frameworkruntime.Option, error) {
	gate := utilfeature.DefaultFeatureGate
	claims := assumecache.NewAssumeCache(logger, w.factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
	tracker, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{
		EnableDeviceTaints:       gate.Enabled(features.DRADeviceTaints),
		EnableConsumableCapacity: gate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            w.factory.Resource().V1().ResourceSlices(),
		TaintInformer:            w.factory.Resource().V1alpha3().DeviceTaintRules(),
		ClassInformer:            w.factory.Resource().V1().DeviceClasses(),
		KubeClient:               w.client,
	})
	if err != nil {
		return nil, err
	}
	manager := dynamicresources.NewDRAManager(ctx, claims, tracker, w.factory)
	return []frameworkruntime.Option{frameworkruntime.WithSharedDRAManager(manager)}, nil
}
