import type { Log } from "@konverge/engine";
import { expect, test } from "vitest";
import { createRestoreRecord } from "../../../libs/worker/src/restore-record.ts";
import { startEmbeddedServer } from "../kube/embedded-server.ts";

const LEASE = { namespace: "default", installation: "konverge" };
const SECOND = "another Redis is used by this installation";

/** The record of a worker, with the messages that it logs. */
function keepMessages(): { readonly log: Log; readonly messages: string[] } {
  const messages: string[] = [];
  const keep = (...args: unknown[]) => void messages.push(String(args.at(-1)));
  const log = { debug: keep, info: keep, warn: keep, error: keep, child: () => log } as Log;
  return { log, messages };
}

test("a worker whose Redis is not that of the installation warns, and leaves the record", async () => {
  await using server = await startEmbeddedServer();
  const { client } = server;
  const [first, second] = [keepMessages(), keepMessages()];
  const ours = createRestoreRecord({ client, ...LEASE, log: first.log });
  const theirs = createRestoreRecord({ client, ...LEASE, log: second.log });
  const nowMs = Date.now();
  await ours.write({ id: "ours", progressMs: nowMs });
  await theirs.write({ id: "theirs", progressMs: nowMs + 1 });
  // The other Redis may have been replaced just now.
  expect(second.messages).toEqual([]);
  await ours.write({ id: "ours", progressMs: nowMs + 2_000 });
  await theirs.write({ id: "theirs", progressMs: nowMs + 3_000 });
  expect(second.messages).toEqual([SECOND]);
  expect(await theirs.read()).toMatchObject({
    id: "ours",
    progressMs: nowMs + 2_000,
    isInUse: true,
  });
  await ours.write({ id: "ours", progressMs: nowMs + 4_000 });
  expect(first.messages).toEqual([]);
});
