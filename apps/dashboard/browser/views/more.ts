// Views that are opened rarely, in one file of the build.
export { ApprovalsView } from "./approvals-view.tsx";
export { ApprovalView } from "./approval-view.tsx";
export { DriftObjectView, DriftView } from "./drift-view.tsx";
export { AuditView } from "./audit-view.tsx";
export { DocsView, HintView } from "./docs-view.tsx";
export { ContentionView } from "./contention-view.tsx";
export { SchedulesView } from "./schedules-view.tsx";
