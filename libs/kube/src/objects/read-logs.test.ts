import { expect, test } from "vitest";
import type { RawRequest } from "../contract/kube-client.ts";
import { Job, Pod } from "../names/kinds.ts";
import { readLogs } from "./read-logs.ts";

const at = { namespace: "n", name: "web" };

test("requests a bounded log with the given options, and returns its text", async () => {
  const requests: RawRequest[] = [];
  const raw = async (request: RawRequest) => {
    requests.push(request);
    return { status: 200, body: "line", headers: {} };
  };
  const options = { container: "app", previous: true, tailLines: 10 };
  expect(await readLogs({ raw }, Pod, { at, options })).toBe("line");
  expect(requests).toEqual([
    {
      method: "GET",
      path: "/api/v1/namespaces/n/pods/web/log",
      query: { ...options, limitBytes: 2 ** 20 },
    },
  ]);
  await expect(readLogs({ raw }, Job, { at, options })).rejects.toMatchObject({
    code: "invalid_request",
  });
});
