package main

import (
	"context"
	"sort"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// draPlugin is what is asked of DynamicResources beyond its filter.
type draPlugin interface {
	PreEnqueue(context.Context, *v1.Pod) *fwk.Status
	Reserve(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status
	Unreserve(context.Context, fwk.CycleState, *v1.Pod, string)
}

type draAnswer struct {
	// PreEnqueue is Success where the pod may be queued for scheduling at all.
	PreEnqueue status `json:"preenqueue"`
	// Allocations holds per feasible node and claim what Reserve has taken there; null where this
	// Kubernetes does not tell. Claims that had devices before are left out, and so is the claim for
	// extended resources, which has no name yet.
	Allocations map[string]map[string]allocationAnswer `json:"allocations"`
	// Extended is per feasible node how many devices Reserve has taken beyond those of Allocations.
	Extended map[string][]string `json:"extended,omitempty"`
	// Scores is what the plugin's Score says per feasible node, before it is normalised.
	Scores map[string]int64 `json:"scores"`
}

type allocationAnswer struct {
	Devices      []deviceAnswer   `json:"devices"`
	NodeSelector *v1.NodeSelector `json:"nodeSelector,omitempty"`
}

type deviceAnswer struct {
	Request  string            `json:"request"`
	Device   string            `json:"device"`
	Admin    bool              `json:"admin,omitempty"`
	Shared   bool              `json:"shared,omitempty"`
	Consumed map[string]string `json:"consumed,omitempty"`
	Skips    []string          `json:"skips,omitempty"`
}

type scoring interface {
	Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status)
}

// askDRA answers what placement does not: whether the pod is queued, and which devices its claims
// would get on each feasible node.
func askDRA(c *casus) (any, error) {
	s, pod, err := c.scheduled()
	if err != nil {
		return nil, err
	}
	plugin := s.plugins[names.DynamicResources].(draPlugin)
	reply := draAnswer{
		Allocations: map[string]map[string]allocationAnswer{},
		Extended:    map[string][]string{},
		Scores:      map[string]int64{},
		PreEnqueue:  say(plugin.PreEnqueue(background, pod)),
	}
	if !tellsAllocations {
		reply.Allocations = nil
		return reply, nil
	}
	manager := s.framework.SharedDRAManager()
	for name, node := range s.answer.Nodes {
		if node.Code != fwk.Success.String() {
			continue
		}
		if scorer, scores := plugin.(scoring); scores {
			info, err := s.snapshot.NodeInfos().Get(name)
			if err != nil {
				return nil, err
			}
			score, _ := scorer.Score(background, s.state, pod, info)
			reply.Scores[name] = score
		}
		before, err := taken(manager)
		if err != nil {
			return nil, err
		}
		if refused := plugin.Reserve(background, s.state, pod, name); !refused.IsSuccess() {
			reply.Allocations[name] = map[string]allocationAnswer{refused.Message(): {}}
			continue
		}
		after, err := taken(manager)
		if err != nil {
			return nil, err
		}
		found := map[string]allocationAnswer{}
		for i := range pod.Spec.ResourceClaims {
			claimName, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
			if err != nil || claimName == nil {
				continue
			}
			claim, err := manager.ResourceClaims().Get(pod.Namespace, *claimName)
			if err != nil {
				return nil, err
			}
			given := pendingAllocation(manager, claim.UID)
			if given == nil {
				continue
			}
			one := allocationAnswer{Devices: []deviceAnswer{}, NodeSelector: given.NodeSelector}
			for _, result := range given.Devices.Results {
				one.Devices = append(one.Devices, sayDevice(result))
				delete(after, deviceName(result))
			}
			found[*claimName] = one
		}
		reply.Allocations[name] = found
		for device := range after {
			if !before[device] {
				reply.Extended[name] = append(reply.Extended[name], device)
			}
		}
		sort.Strings(reply.Extended[name])
		plugin.Unreserve(background, s.state, pod, name)
	}
	return reply, nil
}

func deviceName(result resourcev1.DeviceRequestAllocationResult) string {
	return result.Driver + "/" + result.Pool + "/" + result.Device
}

func sayDevice(result resourcev1.DeviceRequestAllocationResult) deviceAnswer {
	said := deviceAnswer{
		Request: result.Request,
		Device:  deviceName(result),
		Admin:   result.AdminAccess != nil && *result.AdminAccess,
		Shared:  result.ShareID != nil,
		Skips:   skippedOperations(result),
	}
	for name, amount := range result.ConsumedCapacity {
		if said.Consumed == nil {
			said.Consumed = map[string]string{}
		}
		said.Consumed[string(name)] = amount.String()
	}
	return said
}

// taken names every device that is allocated as a whole.
func taken(manager draManager) (map[string]bool, error) {
	devices, err := manager.ResourceClaims().ListAllAllocatedDevices()
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for device := range devices {
		found[device.String()] = true
	}
	return found, nil
}
