import type { Hint } from "@konverge/records";
import { viewHref } from "../state/cluster.ts";

/** A hint with a link to its page. */
export function HintNote({ hint: { code, message } }: { readonly hint: Hint }) {
  return (
    <div class="note warn hint">
      <span>{message}</span>{" "}
      <a class="small" href={viewHref(`/hints/${code}`)}>
        Explain {code}
      </a>
    </div>
  );
}
