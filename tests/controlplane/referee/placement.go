package main

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

type status struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

type nodeAnswer struct {
	status
	// Each is every filter asked on its own, those that refuse; the scheduler stops at the first.
	Each map[string]status `json:"each,omitempty"`
}

type placementAnswer struct {
	PreFilter status `json:"prefilter"`
	// Only is the set of nodes that PreFilter leaves; null means all.
	Only  []string              `json:"only"`
	Nodes map[string]nodeAnswer `json:"nodes"`
	// Message is the text of the FailedScheduling event without the PostFilter part.
	Message string `json:"message,omitempty"`
}

func say(s *fwk.Status) status {
	if s == nil {
		return status{Code: fwk.Success.String()}
	}
	return status{Code: s.Code().String(), Plugin: s.Plugin(), Reasons: s.Reasons()}
}

// scheduler is the default profile over one world.
type scheduler struct {
	framework framework.Framework
	plugins   map[string]schedulerPlugin
	filters   []string
	snapshot  *internalcache.Snapshot
	state     fwk.CycleState
	statuses  *framework.NodeToStatus
	answer    placementAnswer
	close     func() // ends the goroutines that plugins and caches have started
}

var (
	shared          sync.Once
	profile         config.KubeSchedulerProfile
	metricsRecorder *metrics.MetricAsyncRecorder
	background      context.Context
	logger          = klog.LoggerWithName(klog.Background(), "referee")
)

func prepare() {
	shared.Do(func() {
		background = klog.NewContext(context.Background(), logger)
		metrics.Register()
		metricsRecorder = metrics.NewMetricsAsyncRecorder(1000, 1<<40, background.Done())
		configuration, err := latest.Default()
		if err != nil {
			panic(err)
		}
		profile = configuration.Profiles[0]
	})
}

func newScheduler(w *world) (*scheduler, error) {
	prepare()
	ctx, cancel := context.WithCancel(background)
	s := &scheduler{plugins: map[string]schedulerPlugin{}, close: cancel}
	existing := map[string]bool{}
	for _, node := range w.nodes {
		existing[node.Name] = true
	}
	var placed []*v1.Pod
	nominated := nominations{}
	for _, pod := range w.pods {
		if existing[pod.Spec.NodeName] {
			placed = append(placed, pod)
		} else if pod.Spec.NodeName == "" && pod.Status.NominatedNodeName != "" {
			info, err := framework.NewPodInfo(pod)
			if err != nil {
				return nil, err
			}
			nominated[pod.Status.NominatedNodeName] = append(nominated[pod.Status.NominatedNodeName], info)
		}
	}
	s.snapshot = internalcache.NewSnapshot(placed, w.nodes)

	options, err := w.frameworkOptions(ctx, s.snapshot)
	if err != nil {
		return nil, err
	}

	registry := plugins.NewInTreeRegistry()
	for name, factory := range registry {
		registry[name] = func(ctx context.Context, arguments runtime.Object, handle handle) (schedulerPlugin, error) {
			plugin, err := factory(ctx, arguments, handle)
			s.plugins[name] = plugin
			return plugin, err
		}
	}
	configured := profile
	if gatesSwitched { // some arguments of plugins are only allowed, and only defaulted, with a gate
		configuration, err := latest.Default()
		if err != nil {
			return nil, err
		}
		configured = configuration.Profiles[0]
	}
	s.framework, err = frameworkruntime.NewFramework(ctx, registry, &configured, append(options,
		frameworkruntime.WithClientSet(w.client),
		frameworkruntime.WithInformerFactory(w.factory),
		frameworkruntime.WithSnapshotSharedLister(s.snapshot),
		frameworkruntime.WithParallelism(1),
		frameworkruntime.WithMetricsRecorder(metricsRecorder),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodNominator(nominated),
		frameworkruntime.WithLogger(logger),
	)...)
	if err != nil {
		return nil, err
	}
	for _, plugin := range s.framework.ListPlugins().Filter.Enabled {
		s.filters = append(s.filters, plugin.Name)
	}
	return s, nil
}

// run does what Scheduler.findNodesThatFitPod does, for all nodes, without stopping early.
func (s *scheduler) run(pod *v1.Pod) error {
	s.state = framework.NewCycleState()
	s.statuses = framework.NewDefaultNodeToStatus()
	s.answer = placementAnswer{Nodes: map[string]nodeAnswer{}}
	all, err := s.snapshot.NodeInfos().List()
	if err != nil {
		return err
	}
	diagnosis := framework.Diagnosis{NodeToStatus: s.statuses}
	defer func() {
		feasible := 0
		for _, node := range s.answer.Nodes {
			if node.Code == fwk.Success.String() {
				feasible++
			}
		}
		if feasible == 0 {
			s.answer.Message = (&framework.FitError{Pod: pod, NumAllNodes: len(all), Diagnosis: diagnosis}).Error()
		}
	}()
	result, refused, by := s.framework.RunPreFilterPlugins(background, s.state, pod)
	s.answer.PreFilter = say(refused)
	if !refused.IsSuccess() {
		s.statuses.SetAbsentNodesStatus(refused)
		diagnosis.PreFilterMsg = refused.Message()
		for _, node := range all {
			s.answer.Nodes[node.Node().Name] = nodeAnswer{status: say(refused)}
		}
		return nil
	}
	if !result.AllNodes() {
		s.answer.Only = result.NodeNames.UnsortedList()
		elsewhere := fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", by.UnsortedList()))
		s.statuses.SetAbsentNodesStatus(elsewhere)
	}
	for _, node := range all {
		name := node.Node().Name
		reply := nodeAnswer{Each: map[string]status{}}
		for _, filter := range s.filters {
			if s.state.GetSkipFilterPlugins().Has(filter) {
				continue
			}
			alone := s.plugins[filter].(filterPlugin).Filter(background, s.state.Clone(), pod, node)
			if !alone.IsSuccess() {
				alone.SetPlugin(filter)
				reply.Each[filter] = say(alone)
			}
		}
		if !result.AllNodes() && !result.NodeNames.Has(name) {
			reply.status = say(fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "filtered by PreFilter"))
			s.answer.Nodes[name] = reply
			continue
		}
		verdict := s.framework.RunFilterPluginsWithNominatedPods(background, s.state, pod, node)
		reply.status = say(verdict)
		if !verdict.IsSuccess() {
			s.statuses.Set(name, verdict)
			diagnosis.AddPluginStatus(verdict)
		}
		s.answer.Nodes[name] = reply
	}
	return nil
}

// scheduled runs the filters once per question: placement and preemption share the outcome.
func (c *casus) scheduled() (*scheduler, *v1.Pod, error) {
	pod, err := c.storedPod()
	if err != nil || c.scheduler != nil {
		return c.scheduler, pod, err
	}
	s, err := newScheduler(c.world)
	if err != nil {
		return nil, nil, err
	}
	c.scheduler = s
	return s, pod, s.run(pod)
}

func askPlacement(c *casus) (any, error) {
	s, _, err := c.scheduled()
	if err != nil {
		return nil, err
	}
	return s.answer, nil
}

type preemptionAnswer struct {
	// Eligible is false with a reason where the pod may not preempt at all.
	Eligible bool   `json:"eligible"`
	Reason   string `json:"reason,omitempty"`
	// Candidates is every node where preemption would help, with the pods that would have to go.
	Candidates map[string]candidate `json:"candidates"`
	// Refused says of each other node that was tried why preemption does not help there.
	Refused map[string]status `json:"refused"`
	// Chosen is what Kubernetes may choose among the candidates: it breaks the last tie at random.
	Chosen []string `json:"chosen,omitempty"`
	Error  string   `json:"error,omitempty"`
}

type candidate struct {
	Victims    []string `json:"victims"`
	Violations int64    `json:"violations"`
}

func askPreemption(c *casus) (any, error) {
	s, pod, err := c.scheduled()
	if err != nil {
		return nil, err
	}
	plugin := s.plugins[defaultpreemption.Name].(*defaultpreemption.DefaultPreemption)
	reply := preemptionAnswer{Candidates: map[string]candidate{}, Refused: map[string]status{}}
	reply.Eligible, reply.Reason = plugin.PodEligibleToPreemptOthers(background, pod, s.statuses.Get(pod.Status.NominatedNodeName))
	if !reply.Eligible {
		return reply, nil
	}
	potential, err := s.statuses.NodesForStatusCode(s.snapshot.NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return nil, err
	}
	if len(potential) == 0 {
		return reply, nil
	}
	found, statuses, err := plugin.Evaluator.DryRunPreemption(background, s.state, pod, potential, c.world.budgets, 0, int32(len(potential)))
	if err != nil {
		reply.Error = err.Error()
	}
	for _, one := range found {
		victims := candidate{Violations: one.Victims().NumPDBViolations}
		for _, victim := range one.Victims().Pods {
			victims.Victims = append(victims.Victims, victim.Namespace+"/"+victim.Name)
		}
		reply.Candidates[one.Name()] = victims
	}
	for _, node := range potential {
		name := node.Node().Name
		if _, helps := reply.Candidates[name]; !helps {
			reply.Refused[name] = say(statuses.Get(name))
		}
	}
	chosen := sets.New[string]()
	for range 64 {
		if len(found) > 0 {
			chosen.Insert(plugin.Evaluator.SelectCandidate(background, found).Name())
		}
	}
	reply.Chosen = sets.List(chosen)
	return reply, nil
}

// nominations is a fixed PodNominator: pods that were promised a node by an earlier preemption.
type nominations map[string][]fwk.PodInfo

func (n nominations) AddNominatedPod(klog.Logger, fwk.PodInfo, *nominatingInfo) {}
func (n nominations) DeleteNominatedPodIfExists(*v1.Pod)                        {}
func (n nominations) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)      {}
func (n nominations) NominatedPodsForNode(node string) []fwk.PodInfo            { return n[node] }
