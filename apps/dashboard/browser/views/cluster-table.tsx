import type { ClusterList } from "@konverge/contracts";
import { useQuery } from "../api/use-query.ts";
import { CliLine } from "../parts/cli-line.tsx";
import { plural } from "../parts/format.ts";
import { TroubleNote } from "../parts/notice.tsx";
import { Status, type Tone } from "../parts/status.tsx";
import { Table, type Column } from "../parts/table.tsx";
import { Time } from "../parts/time.tsx";

type Cluster = ClusterList["items"][number];

const EVERY_MS = 5_000;

const TONES: Readonly<Record<Cluster["state"], Tone>> = {
  engaged: "good",
  engaging: "warn",
  disengaging: "warn",
  failing: "bad",
};

const COLUMNS: readonly Column<Cluster>[] = [
  { title: "Cluster", look: "strong", cell: ({ name }) => name },
  {
    title: "State",
    cell: ({ state, reason }) => (
      <>
        <Status tone={TONES[state]}>{state}</Status>
        {reason === undefined ? null : <span class="dim"> {reason}</span>}
      </>
    ),
  },
  { title: "Workers", look: "num", cell: engagedOf },
  { title: "API server", look: "num", cell: ({ serverVersion }) => serverVersion ?? "" },
  { title: "Source", cell: ({ source }) => source },
  { title: "Since", look: "right nowrap", cell: ({ since }) => <Time at={since} /> },
];

/** The clusters that the workers serve, of all clusters. */
export function ClusterTable() {
  const { data, trouble } = useQuery<ClusterList>("v1/clusters", EVERY_MS);
  const clusters = data?.items ?? [];
  return (
    <>
      <h2>Clusters</h2>
      <TroubleNote trouble={trouble} />
      {clusters.length === 0 ? null : (
        <div class="panel gap">
          <Table
            caption={plural(clusters.length, "cluster")}
            columns={COLUMNS}
            rows={clusters}
            keyOf={({ name }) => name}
          />
        </div>
      )}
      <CliLine line="konverge cluster list" />
    </>
  );
}

function engagedOf({ workers }: Cluster): string {
  const engaged = workers.filter(({ state }) => state === "engaged");
  return `${engaged.length} of ${workers.length}`;
}
