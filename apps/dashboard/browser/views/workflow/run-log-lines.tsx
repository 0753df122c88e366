import type { RunLog } from "@konverge/contracts";
import { useQuery } from "../../api/use-query.ts";
import { LogLines } from "../../parts/log-lines.tsx";

const EVERY_MS = 5_000;
const ENDED_EVERY_MS = 60_000;

/** The last log lines of a run, oldest first; nothing for a run without any. */
export function RunLogLines({ id, isActive }: { readonly id: string; readonly isActive: boolean }) {
  const path = `v1/runs/${encodeURIComponent(id)}/logs`;
  const { data } = useQuery<RunLog>(path, isActive ? EVERY_MS : ENDED_EVERY_MS);
  if (data === undefined || data.items.length === 0) return null;
  return (
    <details open>
      <summary data-row>Log</summary>
      <LogLines lines={data.items} />
    </details>
  );
}
