// Writers of one ConfigMap, each with client-go's RetryOnConflict: read, count up, update.
//
// Prints one JSON document: {"writes", "gaveUp", "calls", "ms"}. Calls are counted in the transport, as the server gets them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

type counting struct {
	next  http.RoundTripper
	calls *atomic.Int64
}

func (c counting) RoundTrip(request *http.Request) (*http.Response, error) {
	c.calls.Add(1)
	return c.next.RoundTrip(request)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	kubeconfig := flag.String("kubeconfig", "", "path of a kubeconfig")
	name := flag.String("name", "hot", "ConfigMap in the namespace default")
	writers := flag.Int("writers", 10, "writers at once")
	preset := flag.String("preset", "DefaultRetry", "DefaultRetry or DefaultBackoff")
	untilDone := flag.Bool("until-done", false, "run RetryOnConflict again until it succeeds")
	flag.Parse()

	var backoff wait.Backoff
	switch *preset {
	case "DefaultRetry":
		backoff = retry.DefaultRetry
	case "DefaultBackoff":
		backoff = retry.DefaultBackoff
	default:
		return fmt.Errorf("-preset %q: write DefaultRetry or DefaultBackoff", *preset)
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	var calls atomic.Int64
	config.QPS = -1
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &calls} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps("default")
	ctx := context.Background()
	// The connection is there before the clock runs.
	if _, err := maps.Get(ctx, *name, metav1.GetOptions{}); err != nil {
		return err
	}
	calls.Store(0)

	countUp := func() error {
		found, err := maps.Get(ctx, *name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		n, _ := strconv.Atoi(found.Data["count"])
		if found.Data == nil {
			found.Data = map[string]string{}
		}
		found.Data["count"] = strconv.Itoa(n + 1)
		_, err = maps.Update(ctx, found, metav1.UpdateOptions{})
		return err
	}
	var wg sync.WaitGroup
	var writes, gaveUp atomic.Int64
	var failure atomic.Pointer[error]
	started := time.Now()
	for i := 0; i < *writers; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				err := retry.RetryOnConflict(backoff, countUp)
				switch {
				case err == nil:
					writes.Add(1)
					return
				case !apierrors.IsConflict(err):
					failure.Store(&err)
					return
				case !*untilDone:
					gaveUp.Add(1)
					return
				}
			}
		}()
	}
	wg.Wait()
	if err := failure.Load(); err != nil {
		return errors.Join(errors.New("a writer failed"), *err)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]int64{
		"writes": writes.Load(), "gaveUp": gaveUp.Load(), "calls": calls.Load(),
		"ms": time.Since(started).Milliseconds(),
	})
}
