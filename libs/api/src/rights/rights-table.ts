/** The right that a user of a cluster needs for an operation. Instead of it, a right on the installation suffices. */
export type NeededRight =
  /** Only a valid token. */
  | { readonly on: "nothing" }
  /** The verb of the role of the operation, on `installations.konverge.dev`. */
  | { readonly on: "installation" }
  /** On one object of a controller, or on one or all namespaces if the request names no object. */
  | { readonly on: "object"; readonly verb: ObjectVerb }
  /** On the objects of a controller, in one or all namespaces. */
  | { readonly on: "objects"; readonly verb: ObjectVerb }
  /** The same for each item of a batch. */
  | { readonly on: "items"; readonly verb: ObjectVerb }
  /** On `workflows.konverge.dev`, with the name of the workflow. */
  | { readonly on: "workflow"; readonly verb: WorkflowVerb }
  /** The same, with the action of the body as verb. */
  | { readonly on: "workflow"; readonly verb: "action" }
  /** On the object that a mutation changes. */
  | { readonly on: "mutation"; readonly verb: MutationVerb };

/** A user who may patch an object may also `reconcile` it. */
export type ObjectVerb = "get" | "list" | "watch" | "reconcile" | "pause";
export type WorkflowVerb =
  | "get"
  | "list"
  | "start"
  | "signal"
  | "cancel"
  | "pause"
  | "retry"
  | "raise"
  | "terminate";
export type MutationVerb = "get" | "list" | "patch";

const NOTHING = { on: "nothing" } as const;
const INSTALLATION = { on: "installation" } as const;
const object = (verb: ObjectVerb) => ({ on: "object", verb }) as const;
const objects = (verb: ObjectVerb) => ({ on: "objects", verb }) as const;
const workflow = (verb: WorkflowVerb) => ({ on: "workflow", verb }) as const;
const mutation = (verb: MutationVerb) => ({ on: "mutation", verb }) as const;

/** The verb of a role on `installations.konverge.dev`, whose name is the prefix of the installation. */
export const INSTALLATION_VERBS = {
  viewer: "get",
  operator: "operate",
  admin: "administer",
} as const;

/** The rights by operation. docs/identity.md has the same lists. Operations that are not listed need a right on the installation. */
export const RIGHTS: Readonly<Record<string, NeededRight>> = {
  whoami: NOTHING,
  getOpenapi: NOTHING,

  createReconcile: object("reconcile"),
  createReconciles: { on: "items", verb: "reconcile" },
  reconcileObject: object("reconcile"),
  cancelReconcile: object("reconcile"),
  planObject: object("reconcile"),
  releaseDeadLetters: object("reconcile"),
  pause: object("pause"),
  resume: object("pause"),
  pauseObject: object("pause"),
  resumeObject: object("pause"),
  pauseQueue: objects("pause"),
  resumeQueue: objects("pause"),
  getReconcile: object("get"),
  getObject: object("get"),
  getContention: object("get"),
  getLiveObject: object("get"),
  explainObject: object("get"),
  listObjectAttempts: object("get"),
  getAttempt: object("get"),
  getObjectLogs: object("get"),
  listPlans: object("get"),
  getPlan: object("get"),
  getApproval: object("get"),
  getDrift: object("get"),
  listReconciles: objects("list"),
  listKeys: objects("list"),
  listDeadLetters: objects("list"),
  listAttempts: objects("list"),
  listApprovals: objects("list"),
  listDrift: objects("list"),
  listRollups: objects("list"),
  listOperatorActions: objects("list"),
  getActivity: objects("list"),
  followEvents: objects("watch"),

  submitMutation: mutation("patch"),
  submitMutations: mutation("patch"),
  cancelMutation: mutation("patch"),
  getMutation: mutation("get"),
  listMutations: mutation("list"),

  startRun: workflow("start"),
  signalRun: workflow("signal"),
  updateRun: workflow("signal"),
  cancelRun: workflow("cancel"),
  pauseRun: workflow("pause"),
  resumeRun: workflow("pause"),
  retryRun: workflow("retry"),
  raiseRun: workflow("raise"),
  terminateRun: workflow("terminate"),
  actOnRuns: { on: "workflow", verb: "action" },
  getRun: workflow("get"),
  getRunHistory: workflow("get"),
  getRunLogs: workflow("get"),
  listRuns: workflow("list"),
  listRunHistories: workflow("list"),

  // A user who may patch an object must not thereby approve the changes of its controller.
  approvePlan: INSTALLATION,
  rejectPlan: INSTALLATION,
  // It has more than the object: everything that the handler has read.
  getAttemptRecording: INSTALLATION,
  listControllers: INSTALLATION,
  listWorkers: INSTALLATION,
  listQueues: INSTALLATION,
  listPauses: INSTALLATION,
  listClusters: INSTALLATION,
  listSources: INSTALLATION,
  listNotifications: INSTALLATION,
  listMutationKinds: INSTALLATION,
  listLimits: INSTALLATION,
  listGuards: INSTALLATION,
  getGuard: INSTALLATION,
  isolateGuard: INSTALLATION,
  resetGuard: INSTALLATION,
  setGuardRate: INSTALLATION,
  getContentionReport: INSTALLATION,
  getOverview: INSTALLATION,
  listSchedules: INSTALLATION,
  getSchedule: INSTALLATION,
  pauseSchedule: INSTALLATION,
  resumeSchedule: INSTALLATION,
  triggerSchedule: INSTALLATION,
  backfillSchedule: INSTALLATION,
  listAudit: INSTALLATION,
};
