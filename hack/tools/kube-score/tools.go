//go:build tools

// Package tools pins kube-score, which checks the objects of rendered charts.
package tools

import _ "github.com/zegl/kube-score/cmd/kube-score"
