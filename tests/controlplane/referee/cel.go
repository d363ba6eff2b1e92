//go:build !kubernetes1.34

package main

import (
	"context"
	"encoding/json"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
)

func init() { questions["cel"] = askCEL }

// celCase is a device and selectors that are asked about it, in the place of a pod.
type celCase struct {
	Expressions []string           `json:"expressions"`
	Driver      string             `json:"driver"`
	Device      resourceapi.Device `json:"device"`
	// New compiles as for an object that is being created, with the gates below.
	New      bool         `json:"new"`
	Features cel.Features `json:"features"`
}

type celReply struct {
	Refused string `json:"refused,omitempty"`
	MaxCost uint64 `json:"maxCost"`
	Cost    uint64 `json:"cost"`
	Matches bool   `json:"matches"`
	Failed  string `json:"failed,omitempty"`
}

// askCEL compiles and evaluates each selector as the API server and the scheduler do.
func askCEL(c *casus) (any, error) {
	var asked celCase
	if err := json.Unmarshal(c.raw, &asked); err != nil {
		return nil, err
	}
	envType := environment.StoredExpressions
	if asked.New {
		envType = environment.NewExpressions
	}
	replies := []celReply{}
	for _, expression := range asked.Expressions {
		var reply celReply
		compiled := cel.GetCompiler(asked.Features).CompileCELExpression(expression, cel.Options{EnvType: &envType})
		if compiled.Error != nil {
			reply.Refused = compiled.Error.Detail
			replies = append(replies, reply)
			continue
		}
		reply.MaxCost = compiled.MaxCost
		matches, details, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver:                   asked.Driver,
			AllowMultipleAllocations: asked.Device.AllowMultipleAllocations,
			Attributes:               asked.Device.Attributes,
			Capacity:                 asked.Device.Capacity,
		})
		reply.Matches = matches
		if err != nil {
			reply.Failed = cel.EnhanceRuntimeError(err).Error()
		}
		if details != nil && details.ActualCost() != nil {
			reply.Cost = *details.ActualCost()
		}
		replies = append(replies, reply)
	}
	return replies, nil
}
