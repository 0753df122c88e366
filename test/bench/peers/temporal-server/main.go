// The Temporal server of the workflow benchmark: the test server of go.temporal.io/server, with SQLite in memory.
// Prints the address of its frontend, and ends when its stdin closes.
package main

import (
	"fmt"
	"io"
	"os"

	"go.temporal.io/server/temporaltest"
)

func main() {
	server := temporaltest.NewServer()
	defer server.Stop()
	fmt.Println(server.GetFrontendHostPort())
	fmt.Println(server.GetDefaultNamespace())
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
