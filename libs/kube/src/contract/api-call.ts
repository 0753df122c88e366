import type { PlannedCall } from "./call-plan.ts";
import type { CallScope } from "./call-record.ts";

/** An API call, ready to be sent. */
export interface ApiCall extends PlannedCall {
  /** Further request headers; they may replace `Accept`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** True for a write that is rejected if the object has changed, also by the same write. It may be sent twice. */
  readonly guarded?: boolean | undefined;
  /** True if a response may have any content, not only JSON. */
  readonly anyContent?: boolean;
  readonly scope: CallScope;
  readonly signal?: AbortSignal | undefined;
}
