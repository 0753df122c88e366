import { viewHref } from "../state/cluster.ts";
import { Status } from "./status.tsx";

/** A table cell with the number of workers; zero is an error. */
export function WorkerCount({ workers }: { readonly workers: number }) {
  return (
    <td class="num right" data-label="Workers">
      {workers === 0 ? <Status tone="bad">0</Status> : <a href={viewHref("/workers")}>{workers}</a>}
    </td>
  );
}
