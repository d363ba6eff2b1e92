//go:build !kubernetes1.34

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"sync"
	"syscall"
	"time"

	runtimepkg "runtime"

	cadvisor "github.com/google/cadvisor/lib/model"
	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
)

// The question "numa": one kubelet's resource managers, and pods that come to it one after another.
//
// The managers are the kubelet's own (pkg/kubelet/cm), put together as its container manager does:
// the topology manager asks devices, CPUs and memory in this order. The device manager writes under
// /var/lib/kubelet/device-plugins, a path that is a constant. So the managers run in a child of this
// program that has a mount namespace of its own with an empty /var/lib. Where that is not allowed,
// the answer says so under "skipped".

func init() { questions["numa"] = askNuma }

const numaChild = "GPU_ADMIT_REFEREE_NUMA"

func init() {
	if os.Getenv(numaChild) == "" {
		return
	}
	if err := serveNuma(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

type numaCase struct {
	Machine struct {
		Nodes   []cadvisor.Node `json:"numa"`
		Sockets int             `json:"sockets"`
	} `json:"machine"`
	Kubelet struct {
		TopologyManagerPolicy        string            `json:"topologyManagerPolicy"`
		TopologyManagerScope         string            `json:"topologyManagerScope"`
		TopologyManagerPolicyOptions map[string]string `json:"topologyManagerPolicyOptions"`
		CPUManagerPolicy             string            `json:"cpuManagerPolicy"`
		CPUManagerPolicyOptions      map[string]string `json:"cpuManagerPolicyOptions"`
		ReservedSystemCPUs           string            `json:"reservedSystemCPUs"`
		ReservedCPU                  string            `json:"reservedCPU"`
		MemoryManagerPolicy          string            `json:"memoryManagerPolicy"`
		ReservedMemory               []reservation     `json:"reservedMemory"`
		FeatureGates                 map[string]bool   `json:"featureGates"`
	} `json:"kubelet"`
	Devices map[string][]struct {
		ID      string  `json:"id"`
		NUMA    []int64 `json:"numa"`
		Healthy bool    `json:"healthy"`
	} `json:"devices"`
	// Prefers "lowest": the plugin answers GetPreferredAllocation with the lowest IDs.
	Prefers string `json:"prefers"`
	Steps   []struct {
		Admit  json.RawMessage `json:"admit"`
		Remove string          `json:"remove"`
	} `json:"steps"`
}

type reservation struct {
	NumaNode int32           `json:"numaNode"`
	Limits   v1.ResourceList `json:"limits"`
}

type numaAnswer struct {
	// Refused is why such a kubelet does not start at all.
	Refused string `json:"refused,omitempty"`
	// Steps holds one entry per admitted pod; removals have none.
	Steps []numaStep `json:"steps"`
	// Micros is the time that one Admit took, in microseconds, on average.
	Micros float64 `json:"micros"`
}

type numaStep struct {
	Admit   bool   `json:"admit"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Start is why a container of a pod that was let in cannot be created.
	Start string `json:"start,omitempty"`
	// By container, what a pod that was let in has got: resource -> device IDs, exclusive CPUs and
	// the NUMA nodes of its memory.
	Devices map[string]map[string][]string `json:"devices,omitempty"`
	CPUs    map[string]string              `json:"cpus,omitempty"`
	Memory  map[string]map[string][]int    `json:"memory,omitempty"`
}

// -- the parent: hands questions to the child ------------------------------------------------------

var numa struct {
	sync.Mutex
	in      io.Writer
	out     *bufio.Reader
	skipped string
	started bool
}

func askNuma(c *casus) (any, error) {
	numa.Lock()
	defer numa.Unlock()
	if !numa.started {
		numa.started = true
		if err := startNuma(); err != nil {
			numa.skipped = err.Error()
		}
	}
	if numa.skipped != "" {
		return map[string]string{"skipped": numa.skipped}, nil
	}
	line, err := json.Marshal(c.numa)
	if err != nil {
		return nil, err
	}
	if _, err := numa.in.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	reply, err := numa.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("the kubelet's managers ended: %w", err)
	}
	var failure struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal(reply, &failure); err == nil && failure.Error != "" {
		return nil, errors.New(failure.Error)
	}
	return json.RawMessage(reply[:len(reply)-1]), nil
}

func startNuma() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), numaChild+"=1")
	child.Stderr = os.Stderr
	attributes := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attributes.Cloneflags |= syscall.CLONE_NEWUSER
		attributes.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attributes.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	child.SysProcAttr = attributes
	in, err := child.StdinPipe()
	if err != nil {
		return err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return fmt.Errorf("no mount namespace of our own: %w", err)
	}
	numa.in, numa.out = in, bufio.NewReaderSize(out, 1<<20)
	hello, err := numa.out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("no private /var/lib for the device manager: %w", err)
	}
	if hello != "ready\n" {
		return errors.New(hello)
	}
	return nil
}

// -- the child -------------------------------------------------------------------------------------

func serveNuma() error {
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("none", "/var/lib", "tmpfs", 0, ""); err != nil {
		return err
	}
	if err := os.MkdirAll(pluginapi.DevicePluginPath, 0o755); err != nil {
		return err
	}
	quiet()
	fmt.Println("ready")
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var reply any
		if answer, err := numaAnswerOf(line); err != nil {
			reply = map[string]string{"error": err.Error()}
		} else {
			reply = answer
		}
		encoded, err := json.Marshal(reply)
		if err != nil {
			return err
		}
		_, _ = out.Write(append(encoded, '\n'))
		_ = out.Flush()
	}
}

// kubelet holds the managers of one case.
type kubelet struct {
	topology topologymanager.Manager
	devices  *devicemanager.ManagerImpl
	cpus     cpumanager.Manager
	memory   memorymanager.Manager

	asked  numaCase
	active []*v1.Pod
	// coming is what Start's reconcile goroutine ends through, see startCPUs.
	coming chan struct{}
}

func numaAnswerOf(line []byte) (answer *numaAnswer, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	k := &kubelet{}
	if err := json.Unmarshal(line, &k.asked); err != nil {
		return nil, err
	}
	gates := utilfeature.DefaultMutableFeatureGate
	for gate, on := range k.asked.Kubelet.FeatureGates {
		was := gates.Enabled(featuregate.Feature(gate))
		if err := gates.SetFromMap(map[string]bool{gate: on}); err != nil {
			return nil, err
		}
		defer func() { _ = gates.SetFromMap(map[string]bool{gate: was}) }()
	}
	answer = &numaAnswer{Steps: []numaStep{}}
	folder, err := os.MkdirTemp("/var/lib", "state")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if refused := k.start(folder); refused != nil {
		answer.Refused = refused.Error()
		return answer, nil
	}
	defer func() {
		_ = k.devices.Stop(klog.Background())
		_ = os.Remove(filepath.Join(pluginapi.DevicePluginPath, "kubelet_internal_checkpoint"))
	}()
	var spent time.Duration
	for _, step := range k.asked.Steps {
		if step.Remove != "" {
			k.remove(types.UID(step.Remove))
			continue
		}
		pod := &v1.Pod{}
		if err := json.Unmarshal(step.Admit, pod); err != nil {
			return nil, err
		}
		legacyscheme.Scheme.Default(pod)
		k.active = append(k.active, pod)
		begun := time.Now()
		result := k.topology.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: pod, Operation: lifecycle.AddOperation})
		spent += time.Since(begun)
		entry := numaStep{Admit: result.Admit, Reason: result.Reason, Message: result.Message}
		if result.Admit {
			for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				// what the kubelet does when it creates the container
				if _, err := k.devices.GetDeviceRunContainerOptions(context.Background(), pod, &container); err != nil {
					entry.Start = err.Error()
					break
				}
			}
			k.holdings(pod, &entry)
		} else {
			k.remove(pod.UID)
		}
		answer.Steps = append(answer.Steps, entry)
	}
	if len(answer.Steps) > 0 {
		answer.Micros = float64(spent.Microseconds()) / float64(len(answer.Steps))
	}
	return answer, nil
}

func (k *kubelet) remove(uid types.UID) {
	kept := []*v1.Pod{}
	for _, pod := range k.active {
		if pod.UID != uid {
			kept = append(kept, pod)
		}
	}
	k.active = kept
}

// start puts the managers together as NewContainerManager does, in the same order.
func (k *kubelet) start(folder string) error {
	log, asked := klog.Background(), k.asked.Kubelet
	var err error
	k.topology, err = topologymanager.NewManager(log, k.asked.Machine.Nodes, asked.TopologyManagerPolicy,
		asked.TopologyManagerScope, asked.TopologyManagerPolicyOptions)
	if err != nil {
		return err
	}
	k.devices, err = devicemanager.NewManagerImpl(log, k.asked.Machine.Nodes, k.topology)
	if err != nil {
		return err
	}
	k.topology.AddHintProvider(log, k.devices)
	machine := &cadvisor.MachineInfo{Topology: k.asked.Machine.Nodes, NumSockets: k.asked.Machine.Sockets}
	for _, node := range machine.Topology {
		for _, core := range node.Cores {
			machine.NumCores += len(core.Threads)
			machine.NumPhysicalCores++
		}
	}
	specific, err := cpuset.Parse(asked.ReservedSystemCPUs)
	if err != nil {
		return err
	}
	reserved := v1.ResourceList{}
	if asked.ReservedCPU != "" {
		reserved[v1.ResourceCPU] = resource.MustParse(asked.ReservedCPU)
	}
	reservations := []kubeletconfig.MemoryReservation{}
	for _, one := range asked.ReservedMemory {
		reservations = append(reservations, kubeletconfig.MemoryReservation{NumaNode: one.NumaNode, Limits: one.Limits})
		for name, amount := range one.Limits {
			total := reserved[name]
			total.Add(amount)
			reserved[name] = total
		}
	}
	k.cpus, err = cpumanager.NewManager(log, asked.CPUManagerPolicy, asked.CPUManagerPolicyOptions,
		24*time.Hour, machine, specific, reserved, folder, k.topology)
	if err != nil {
		return err
	}
	k.topology.AddHintProvider(log, k.cpus)
	k.memory, err = memorymanager.NewManager(log, asked.MemoryManagerPolicy, machine, reserved, reservations, folder, k.topology)
	if err != nil {
		return err
	}
	k.topology.AddHintProvider(log, k.memory)

	activePods := func() []*v1.Pod { return k.active }
	if err := k.startCPUs(); err != nil {
		return err
	}
	if err := k.memory.Start(context.Background(), activePods, ready{}, noStatus{}, nil, containermap.NewContainerMap()); err != nil {
		return err
	}
	if err := k.devices.Start(log, activePods, ready{}, containermap.NewContainerMap(), sets.New[string]()); err != nil {
		return err
	}
	for name, listed := range k.asked.Devices {
		plugin := &devicePlugin{resource: name, lowest: k.asked.Prefers == "lowest"}
		if err := k.devices.PluginConnected(context.Background(), name, plugin); err != nil {
			return err
		}
		response := &pluginapi.ListAndWatchResponse{}
		for _, one := range listed {
			device := &pluginapi.Device{ID: one.ID, Health: pluginapi.Unhealthy}
			if one.Healthy {
				device.Health = pluginapi.Healthy
			}
			if len(one.NUMA) > 0 {
				device.Topology = &pluginapi.TopologyInfo{}
				for _, id := range one.NUMA {
					device.Topology.Nodes = append(device.Topology.Nodes, &pluginapi.NUMANode{ID: id})
				}
			}
			response.Devices = append(response.Devices, device)
		}
		k.devices.PluginListAndWatchReceiver(log, name, response)
	}
	return nil
}

// startCPUs starts the CPU manager without the goroutine that it leaves running: thousands of cases
// would pile them up. The first thing that goroutine asks for is the list of active pods; it ends
// there, with its deferred unlocking done.
func (k *kubelet) startCPUs() error {
	ended := make(chan struct{})
	reconciles := k.asked.Kubelet.CPUManagerPolicy != string(cpumanager.PolicyNone)
	first := reconciles
	activePods := func() []*v1.Pod {
		if first {
			first = false
			defer close(ended)
			runtimepkg.Goexit()
		}
		return k.active
	}
	err := k.cpus.Start(context.Background(), activePods, ready{}, noStatus{}, nil, containermap.NewContainerMap())
	if err == nil && reconciles {
		<-ended
	}
	return err
}

func (k *kubelet) holdings(pod *v1.Pod, entry *numaStep) {
	entry.Devices, entry.CPUs = map[string]map[string][]string{}, map[string]string{}
	entry.Memory = map[string]map[string][]int{}
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for name, devices := range k.devices.GetDevices(string(pod.UID), container.Name) {
			if entry.Devices[container.Name] == nil {
				entry.Devices[container.Name] = map[string][]string{}
			}
			ids := []string{}
			for id := range devices {
				ids = append(ids, id)
			}
			sort.Strings(ids)
			entry.Devices[container.Name][name] = ids
		}
		if cpus := k.cpus.GetExclusiveCPUs(string(pod.UID), container.Name); !cpus.IsEmpty() {
			entry.CPUs[container.Name] = cpus.String()
		}
		for _, block := range k.memory.GetMemory(klog.Background(), string(pod.UID), container.Name) {
			if entry.Memory[container.Name] == nil {
				entry.Memory[container.Name] = map[string][]int{}
			}
			entry.Memory[container.Name][string(block.Type)] = block.NUMAAffinity
		}
	}
}

type ready struct{}

func (ready) AddSource(string) {}
func (ready) AllReady() bool   { return true }

type noStatus struct{}

func (noStatus) GetPodStatus(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }

// devicePlugin is a device plugin without a process or a socket.
type devicePlugin struct {
	pluginapi.DevicePluginClient // nil: what is not overridden below is not used
	resource                     string
	lowest                       bool
}

func (p *devicePlugin) API() pluginapi.DevicePluginClient { return p }
func (p *devicePlugin) Resource() string                  { return p.resource }
func (p *devicePlugin) SocketPath() string                { return p.resource }

func (p *devicePlugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty, ...grpc.CallOption) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: p.lowest}, nil
}

func (p *devicePlugin) Allocate(_ context.Context, request *pluginapi.AllocateRequest, _ ...grpc.CallOption) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{})
	}
	return response, nil
}

func (p *devicePlugin) GetPreferredAllocation(_ context.Context, request *pluginapi.PreferredAllocationRequest, _ ...grpc.CallOption) (*pluginapi.PreferredAllocationResponse, error) {
	response := &pluginapi.PreferredAllocationResponse{}
	for _, one := range request.ContainerRequests {
		chosen := sets.New(one.MustIncludeDeviceIDs...)
		for _, id := range sets.List(sets.New(one.AvailableDeviceIDs...)) {
			if chosen.Len() < int(one.AllocationSize) {
				chosen.Insert(id)
			}
		}
		response.ContainerResponses = append(response.ContainerResponses,
			&pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: sets.List(chosen)})
	}
	return response, nil
}
