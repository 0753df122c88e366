import { condition, defineSignal, proxyActivities, setHandler } from "@temporalio/workflow";

// The same time as the lease of a run of Konverge.
const steps = proxyActivities({ startToCloseTimeout: "10s" });
const approve = defineSignal("approve");

export async function five() {
  let sum = 0;
  for (let n = 0; n < 5; n++) sum += await steps.five(n);
  return sum;
}

export async function approval(id) {
  let isApproved = false;
  setHandler(approve, () => {
    isApproved = true;
  });
  await steps.prepared(id);
  await condition(() => isApproved);
  await steps.approved(id);
}

export async function stall(id) {
  await steps.stall(id);
}
