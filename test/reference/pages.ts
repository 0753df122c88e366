import type { Page } from "./make-page.ts";

const engine = (name: string, prefix = "") => ({ from: "libs/engine/src/define", name, prefix });
const kube = (name: string, prefix = "") => ({ from: "libs/kube/src", name, prefix });
const workflow = (name: string, prefix = "") => ({
  from: "libs/workflow/src/define",
  name,
  prefix,
});
const testing = (name: string, prefix = "") => ({ from: "apps/cli/src/testing", name, prefix });

/** The pages of docs/reference, by file. */
export const PAGES: Readonly<Record<string, Page>> = {
  "controllers.md": {
    title: "Reference: controllers",
    intro:
      "Look up the options of `defineController`, the context of a handler, the calls of `kube`, predicates and helpers. All are exported by `konverge`.",
    of: [
      engine("defineController"),
      engine("ControllerOptions"),
      engine("WatchSource"),
      engine("Permission"),
      engine("ReconcileContext"),
      engine("AttemptKube", "kube."),
      engine("StartRunOptions"),
      engine("RunState"),
      engine("Predicate"),
      engine("generationChanged"),
      engine("labelsChanged"),
      engine("annotationsChanged"),
      engine("resourceVersionChanged"),
      engine("anyOf"),
      engine("allOf"),
      engine("not"),
      engine("Middleware"),
      engine("reportProgress"),
      kube("setCondition"),
      kube("setControllerReference"),
      kube("addFinalizer"),
      kube("removeFinalizer"),
      kube("retryOnConflict"),
    ],
  },
  "resources.md": {
    title: "Reference: resources and configuration",
    intro: "Look up the options of `defineResource` and `defineConfig`.",
    of: [
      engine("defineResource"),
      engine("ResourceDefinition"),
      engine("PrinterColumn"),
      engine("OtherVersion"),
      engine("Resource"),
      { from: "libs/worker/src/config", name: "defineConfig" },
      { from: "libs/worker/src/config", name: "ConfigInput" },
    ],
  },
  "workflows.md": {
    title: "Reference: workflows",
    intro:
      "Look up the options of `defineWorkflow` and `defineSchedule`, the verbs of `w` and of a step, the conditions of `w.waitFor`, and codecs.",
    of: [
      workflow("defineWorkflow"),
      workflow("WorkflowOptions"),
      workflow("WorkflowContext", "w."),
      workflow("StepOptions"),
      workflow("RetryOptions"),
      workflow("ChildOptions"),
      workflow("SignalOptions"),
      workflow("WaitForOptions"),
      workflow("StepContext", "k."),
      workflow("StepVerbs", "k."),
      workflow("ready"),
      workflow("condition"),
      workflow("field"),
      workflow("gone"),
      workflow("complete"),
      workflow("all"),
      workflow("any"),
      { from: "libs/workflow/src/schedules", name: "ScheduleOptions" },
      { from: "libs/core/src", name: "ScheduleOverlap" },
      { from: "libs/core/src", name: "PayloadCodec" },
      { from: "libs/core/src", name: "CodecContext" },
      { from: "libs/core/src", name: "CodecValueKind" },
      { from: "libs/workflow/src/codec", name: "aesGcmCodec" },
      { from: "libs/workflow/src/codec", name: "AesGcmCodecOptions" },
      { from: "libs/workflow/src/codec", name: "externalCodec" },
      { from: "libs/workflow/src/codec", name: "ExternalCodecOptions" },
      { from: "libs/workflow/src/codec", name: "encodeValue" },
      { from: "libs/workflow/src/codec", name: "decodeValue" },
    ],
  },
  "testing.md": {
    title: "Reference: testing",
    intro: "Look up the helpers of `konverge/testing`.",
    of: [
      testing("startTestCluster"),
      testing("TestClusterOptions"),
      testing("TestCluster", "k."),
      testing("Attempt"),
      testing("CallFilter"),
      { from: "libs/workflow/src/testing", name: "replay" },
      { from: "libs/workflow/src/testing", name: "testWorkflow" },
      { from: "libs/workflow/src/testing", name: "TestWorkflowOptions" },
      { from: "libs/workflow/src/testing", name: "TestRun", prefix: "t." },
      { from: "libs/workflow/src/testing", name: "TestChild" },
    ],
  },
};
