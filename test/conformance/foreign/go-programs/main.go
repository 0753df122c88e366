// Command go-programs runs programs written with client-go and controller-runtime against the server of a kubeconfig,
// and prints what they see. The conformance tests compare the output of two servers. Usage: go-programs SCENARIO.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// A scenario prints with world.say and ends with the first unexpected error.
var scenarios = map[string]func(context.Context, *world) error{
	"informers":   informers,
	"clients":     clients,
	"patches":     patches,
	"applying":    applying,
	"subresource": subresources,
	"eviction":    evictions,
	"watches":     watches,
	"election":    election,
	"events":      events,
	"controller":  runController,
}

type world struct {
	config    *rest.Config
	namespace string
	typed     *kubernetes.Clientset
	dynamic   *dynamic.DynamicClient
	metadata  metadata.Interface
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return err
	}
	config.QPS = -1
	config.UserAgent = "go-programs/1"
	namespace, _, err := loader.Namespace()
	if err != nil {
		return err
	}
	w := &world{config: config, namespace: namespace}
	if w.typed, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if w.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if w.metadata, err = metadata.NewForConfig(config); err != nil {
		return err
	}
	for _, name := range args {
		scenario, ok := scenarios[name]
		if !ok {
			return fmt.Errorf("no scenario %q", name)
		}
		fmt.Printf("== %s\n", name)
		if err := scenario(ctx, w); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (w *world) say(format string, values ...any) {
	fmt.Println(strings.TrimRight(fmt.Sprintf(format, values...), "\n"))
}
