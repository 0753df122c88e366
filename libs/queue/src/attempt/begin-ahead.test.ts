import type { Job } from "bullmq";
import { expect, test } from "vitest";
import type { JobPayload } from "../keys/job-payload.ts";
import { createBeginAhead, type BegunAhead } from "./begin-ahead.ts";

type Finish = Job<JobPayload>["moveToCompleted"];
const covered = { kind: "covered" } as const;

/** A slot whose finishes and begins answer as given. Each begin returns the job `begun`. */
function openSlot(begun: string) {
  const givenBack: string[] = [];
  const owners: string[] = [];
  let owner = 0;
  const ahead = createBeginAhead({
    store: {
      begin: async () => covered,
      beginNext: async (_token, _finishing, own) => {
        owners.push(own);
        return { jobId: begun, id: `key-${begun}`, begun: covered };
      },
    },
    nextOwner: () => `o${++owner}`,
    giveBack: ({ id, owner: own }: BegunAhead) => givenBack.push(`${id} of ${own}`),
  });
  const follow = (finish: Finish): (() => ReturnType<Finish>) => {
    const job = { id: "1", data: { key: "key-1" }, moveToCompleted: finish };
    ahead.follow(job as unknown as Job<JobPayload>, "t", () => undefined);
    return () => job.moveToCompleted(undefined, "t", true);
  };
  const take = (id: string) =>
    ahead.take({ id, data: { key: `key-${id}` } } as Job<JobPayload>, "t");
  return { ahead, follow, take, givenBack, owners };
}
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("hands out the attempt of the job that the finish returned", async () => {
  const { ahead, follow, take, givenBack } = openSlot("2");
  await follow(async () => ["{}", "2", 0, 0])();
  await settled();
  expect(await take("2")).toMatchObject({ id: "key-2", owner: "o1" });
  expect([givenBack, await ahead.rest()]).toEqual([[], []]);
});

test.each([
  { name: "returns no job", finish: async () => undefined },
  { name: "fails", finish: () => Promise.reject(new Error("Missing lock for job 1")) },
])("releases the attempt if the finish $name", async ({ finish }) => {
  const { ahead, follow, take, givenBack } = openSlot("2");
  await follow(finish as Finish)().catch(() => undefined);
  await settled();
  expect(givenBack).toEqual(["key-2 of o1"]);
  expect([await take("2"), await ahead.rest()]).toEqual([undefined, []]);
});

test("releases the attempt if the finish returned another job", async () => {
  const { ahead, follow, take, givenBack } = openSlot("2");
  await follow(async () => ["{}", "3", 0, 0])();
  await settled();
  expect(await take("3")).toBe(undefined);
  expect([givenBack, await ahead.rest()]).toEqual([["key-2 of o1"], []]);
});

test("a repeated finish begins with the same owner", async () => {
  const { follow, take, owners } = openSlot("2");
  const answers: unknown[] = [
    Promise.reject(new Error("Connection is closed.")),
    ["{}", "2", 0, 0],
  ];
  const finish = follow((() => Promise.resolve(answers.shift())) as Finish);
  await finish().catch(() => undefined);
  await finish();
  await settled();
  expect(owners).toEqual(["o1", "o1"]);
  expect(await take("2")).toMatchObject({ owner: "o1" });
});
