// Command kube-apiserver is the real Kubernetes API server, built from its Go modules for machines
// that cannot download a release. The build sets the version by -ldflags; see ../build.js.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"

	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() {
	os.Exit(cli.Run(app.NewAPIServerCommand()))
}
