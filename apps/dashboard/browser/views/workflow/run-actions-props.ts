import type { RunDetail } from "@konverge/contracts";

export interface RunActionsProps {
  readonly run: RunDetail;
  readonly onDone: () => void;
}
