package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	securityadmission "k8s.io/pod-security-admission/admission"
	securityconfig "k8s.io/pod-security-admission/admission/api/load"
	securityapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	"k8s.io/pod-security-admission/policy"
)

func init() { questions["podsecurity"] = askPodSecurity }

// emulate is an annotation of the case's namespace: the minor version that the API server plays.
const emulate = "referee/emulate"

type podSecurityAnswer struct {
	// Pod is what a create of the pod itself gets, Template what a Deployment of it gets.
	Pod      podSecurityReply `json:"pod"`
	Template podSecurityReply `json:"template"`
}

type podSecurityReply struct {
	Allowed  bool              `json:"allowed"`
	Message  string            `json:"message,omitempty"`
	Warnings []string          `json:"warnings,omitempty"`
	Audit    map[string]string `json:"audit,omitempty"`
}

// askPodSecurity asks the library behind the PodSecurity plugin about the pod as it is written: no
// defaults, no object validation, so that values that could never be stored are compared as well.
func askPodSecurity(c *casus) (any, error) {
	pod := &v1.Pod{}
	if err := json.Unmarshal(c.raw, pod); err != nil {
		return nil, err
	}
	namespace, err := c.world.factory.Core().V1().Namespaces().Lister().Get(pod.Namespace)
	if err != nil {
		return nil, err
	}
	judge, err := podSecurity(namespace)
	if err != nil {
		return nil, err
	}
	record := func(obj runtime.Object, group, resource, kind string) podSecurityReply {
		return replyOf(judge.Validate(context.Background(), &securityapi.AttributesRecord{
			Name: pod.Name, Namespace: pod.Namespace, Operation: admissionv1.Create, Object: obj, Username: "someone",
			Kind:     schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind},
			Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource},
		}))
	}
	deployment := &appsv1.Deployment{}
	deployment.Name, deployment.Namespace = pod.Name, pod.Namespace
	deployment.Spec.Template = v1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	return podSecurityAnswer{
		Pod:      record(pod, "", "pods", "Pod"),
		Template: record(deployment, "apps", "deployments", "Deployment"),
	}, nil
}

func replyOf(response *admissionv1.AdmissionResponse) podSecurityReply {
	reply := podSecurityReply{Allowed: response.Allowed, Warnings: response.Warnings, Audit: response.AuditAnnotations}
	if response.Result != nil {
		reply.Message = response.Result.Message
	}
	return reply
}

var (
	evaluators     = map[string]policy.Evaluator{}
	evaluatorsLock sync.Mutex
)

func podSecurity(namespace *v1.Namespace) (*securityadmission.Admission, error) {
	config, err := securityconfig.LoadFromData(nil)
	if err != nil {
		return nil, err
	}
	evaluatorsLock.Lock()
	defer evaluatorsLock.Unlock()
	wanted := namespace.Annotations[emulate]
	evaluator, known := evaluators[wanted]
	if !known {
		var emulated *securityapi.Version
		if wanted != "" {
			var minor int
			if _, err := fmt.Sscanf(wanted, "1.%d", &minor); err != nil {
				return nil, err
			}
			version := securityapi.MajorMinorVersion(1, minor)
			emulated = &version
		}
		if evaluator, err = policy.NewEvaluator(policy.DefaultChecks(), emulated); err != nil {
			return nil, err
		}
		evaluators[wanted] = evaluator
	}
	judge := &securityadmission.Admission{
		Configuration:   config,
		Evaluator:       evaluator,
		Metrics:         noMetrics{},
		NamespaceGetter: oneNamespace{namespace},
		PodLister:       noPods{},
	}
	if err := judge.CompleteConfiguration(); err != nil {
		return nil, err
	}
	return judge, judge.ValidateConfiguration()
}

type oneNamespace struct{ namespace *v1.Namespace }

func (o oneNamespace) GetNamespace(context.Context, string) (*v1.Namespace, error) {
	return o.namespace, nil
}

type noPods struct{}

func (noPods) ListPods(context.Context, string) ([]*v1.Pod, error) { return nil, nil }

type noMetrics struct{}

func (noMetrics) RecordEvaluation(metrics.Decision, securityapi.LevelVersion, metrics.Mode, securityapi.Attributes) {
}
func (noMetrics) RecordExemption(securityapi.Attributes)   {}
func (noMetrics) RecordError(bool, securityapi.Attributes) {}
