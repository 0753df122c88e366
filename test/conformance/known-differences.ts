/**
 * Cases in which the embedded API server is known to answer otherwise than the real one. Each is a bug of the embedded
 * server, or of the case, to be mended; until then the suite says so, as a skipped test with its reason. `npm run
 * conformance` shows and counts all of them.
 */
export const KNOWN_DIFFERENCES: ReadonlySet<string> = new Set<string>([
  "finalizers without a domain: a warning for a custom resource, refused for a ConfigMap",
  "numbers: integers that look like floats, floats that are no integers, 64 bits",
  "what an invalid object was is tolerated as long as it does not change",
  "what the client accepts",
  "a body of more than 3 MiB",
  "names: on a PUT, in an apply, of namespaces, generated",
  "a Lease can be patched, not created by a patch",
  "JSON Patch of whole objects, of metadata, of lists",
]);
