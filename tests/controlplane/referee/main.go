// Referee answers, in Kubernetes' own words, what kubectl gpu-admit claims to know.
//
// One JSON object per line in, one per line out. A question carries whole API objects:
//
//	{"id": 7, "ask": ["placement", "preemption"], "objects": [{"kind": "Node", …}, …], "pod": {…}}
//
// and the answer holds one member per name in "ask". Objects are defaulted by the API server's own
// scheme first, as stored ones are. Names that nobody registered in `questions` are answered with an
// error, so that later families only add an entry.
//
// Everything runs in process: no API server, no etcd, no network. Only "numa" has a child process,
// see there.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
)

type question struct {
	ID      json.RawMessage   `json:"id"`
	Ask     []string          `json:"ask"`
	Objects []json.RawMessage `json:"objects"`
	Pod     json.RawMessage   `json:"pod"`
	// Count asks admission how many pods like this one are let in one after another.
	Count int `json:"count"`
	// Numa is the machine, kubelet and sequence of pods of the question "numa".
	Numa json.RawMessage `json:"numa"`
	// Plugins names admission plugins that are on besides the default ones.
	Plugins []string `json:"plugins"`
	// Gates are feature gates that are switched for this question alone.
	Gates map[string]bool `json:"gates"`
}

// casus is one question after decoding: the world it speaks of and the pod that asks.
type casus struct {
	world *world
	raw   json.RawMessage
	pod   *v1.Pod
	count int
	numa  json.RawMessage
	// plugins are admission plugins that are on besides the default ones.
	plugins []string

	scheduler *scheduler
}

type answerer func(*casus) (any, error)

// questions maps a name in "ask" to what answers it.
var questions = map[string]answerer{
	"placement":  askPlacement,
	"preemption": askPreemption,
	"dra":        askDRA,
	"admission":  askAdmission,
	"quota":      askQuota,
	"object":     askObject,
	"decode":     askDecode,
	"version":    func(*casus) (any, error) { return version(), nil },
	"goroutines": func(*casus) (any, error) { return runtime.NumGoroutine(), nil },
}

// quiet keeps what Kubernetes' code logs away from the answers and from stderr.
func quiet() {
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	_ = klogFlags.Set("logtostderr", "false")
	_ = klogFlags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
}

func main() {
	quiet()
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			encoded, encodeErr := json.Marshal(answer(line))
			if encodeErr != nil {
				encoded = []byte(fmt.Sprintf(`{"error":%q}`, encodeErr.Error()))
			}
			_, _ = out.Write(append(encoded, '\n'))
			if in.Buffered() == 0 {
				_ = out.Flush()
			}
		}
		if err != nil {
			_ = out.Flush()
			return
		}
	}
}

// gatesSwitched is true while a question is answered that switches feature gates.
var gatesSwitched bool

// switchGates sets feature gates, as --feature-gates of every component would, until restore is called.
func switchGates(wanted map[string]bool) (restore func(), err error) {
	gate := utilfeature.DefaultMutableFeatureGate
	before := map[string]bool{}
	for name := range wanted {
		if _, known := gate.GetAll()[featuregate.Feature(name)]; !known {
			return nil, fmt.Errorf("no feature gate %s", name)
		}
		before[name] = gate.Enabled(featuregate.Feature(name))
	}
	if err := gate.SetFromMap(wanted); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	gatesSwitched = len(wanted) > 0
	return func() {
		gatesSwitched = false
		if err := gate.SetFromMap(before); err != nil {
			panic(err)
		}
	}, nil
}

// answer never panics: a case that breaks Kubernetes' code is a finding, not the end of the run.
func answer(line []byte) (result map[string]any) {
	result = map[string]any{}
	defer func() {
		if r := recover(); r != nil {
			result["error"] = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		result["error"] = "question: " + err.Error()
		return result
	}
	result["id"] = q.ID
	restore, err := switchGates(q.Gates)
	if err != nil {
		result["error"] = err.Error()
		return result
	}
	defer restore()
	world, err := newWorld(q.Objects)
	if err != nil {
		result["error"] = err.Error()
		return result
	}
	c := &casus{world: world, raw: q.Pod, count: q.Count, numa: q.Numa, plugins: q.Plugins}
	defer func() {
		if c.scheduler != nil {
			c.scheduler.close()
		}
	}()
	for _, name := range q.Ask {
		ask, known := questions[name]
		if !known {
			result["error"] = "unknown question: " + name
			return result
		}
		reply, err := ask(c)
		if err != nil {
			result["error"] = name + ": " + err.Error()
			return result
		}
		result[name] = reply
	}
	return result
}
