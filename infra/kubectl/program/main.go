// Command kubectl is the Kubernetes command line, built from its Go modules for machines that cannot download a
// release: the main program of k8s.io/kubernetes/cmd/kubectl. The build sets the version by -ldflags; see
// ../find-kubectl.js.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() {
	// Before cli.RunNoErrOutput parses the flags, so that the construction of the commands can log too.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
