import { viewHref } from "../state/cluster.ts";
import { Status } from "./status.tsx";

/** The number of workers; zero is an error. */
export function WorkerCount({ workers }: { readonly workers: number }) {
  if (workers === 0) return <Status tone="bad">0</Status>;
  return <a href={viewHref("/workers")}>{workers}</a>;
}
