/**
 * Cases in which the embedded API server is known to answer otherwise than the real one. Each is a bug of the embedded
 * server, or of the case, to be mended; until then the suite says so, as a skipped test with its reason. `npm run
 * conformance` shows and counts all of them.
 */
export const KNOWN_DIFFERENCES: ReadonlySet<string> = new Set([
  "JSON Patch with copy, move and list indexes",
  "malformed patches",
  "Deployment: a label moves the version, not the generation",
  "Deployment: an annotation moves both",
  "Deployment: spec moves both",
  "Deployment: status moves the version, not the generation, and keeps an annotation",
  "Deployment: no edit moves neither",
  "a kind without status subresource writes status with the rest",
  "validation of a custom resource tells every wrong field",
  "metadata that is refused",
  "deletecollection deletes what the selectors choose",
  "an object that is made again has another uid",
  "a namespace that is not there, and one that is going away",
  "a list has the version of the store, items in order of their names",
  "pages keep the version of the first one, whatever is written between them",
  "a list at exactly a version",
  "label selectors",
  "field selectors",
  "options of a list that are refused",
  "a watch from a version that is gone: 410 as an event of a 200 stream",
  "apply of a Deployment: containers and ports by their keys, defaults belong to nobody",
  "strategic merge: containers by name; a custom resource refuses it",
  "scale of a custom resource: the parent's version is its precondition",
  "scale of a Deployment",
  "Deployment: defaults, and what is refused",
  "Lease: created by PUT, times with six digits, no unconditional update",
  "Event of core, and as events.k8s.io shows it",
  "a definition is established, serves, and takes its objects along when it goes",
  "methods that a custom resource does not have",
]);
