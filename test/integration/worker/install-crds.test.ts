import { defineResource, type Resource } from "@konverge/engine";
import type { KubeClient } from "@konverge/kube";
import { CustomResourceDefinition } from "@konverge/kube/kinds";
import { beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { installCrds } from "../../../apps/cli/src/config/install-crds.ts";
import { testServers } from "../kube/kube-servers.ts";

/** Two versions of a definition, of another group for each test, because a CRD is deleted slowly. */
let group = "";
const gadget = (fields: z.ZodRawShape) =>
  defineResource({ group, version: "v1", kind: "Gadget", spec: z.object(fields) });
let before: Resource;
let after: Resource;
let serial = 0;
beforeEach(() => {
  group = `install${++serial}.test.konverge.dev`;
  before = gadget({ size: z.int() });
  after = gadget({ size: z.int(), color: z.string().optional() });
});
const nameOf = () => `gadgets.${group}`;

/** How a CRD can be installed without this project. */
const installers: [string, (client: KubeClient) => Promise<unknown>][] = [
  [
    "kubectl apply --server-side",
    (client) =>
      client.scoped({ fieldManager: "kubectl" }).apply(CustomResourceDefinition, before.crd()),
  ],
  [
    "kubectl apply",
    (client) =>
      client
        .scoped({ fieldManager: "kubectl-client-side-apply" })
        .create(CustomResourceDefinition, before.crd()),
  ],
  ["crds --apply", (client) => installCrds(client, [before])],
];

describe.each(testServers().map((server) => [server.name, server] as const))(
  "%s",
  (_name, server) => {
    const withClient = async (run: (client: KubeClient) => Promise<void>) => {
      const opened = await server.open();
      const { client } = opened;
      try {
        await run(client);
      } finally {
        await client.delete(CustomResourceDefinition, { name: nameOf() }).catch(() => undefined);
        await opened.close();
      }
    };
    const hasColor = async (client: KubeClient) =>
      JSON.stringify(await client.get(CustomResourceDefinition, { name: nameOf() })).includes(
        '"color"',
      );

    test.each(installers)("changes CRDs that were installed with %s", async (_title, install) => {
      await withClient(async (client) => {
        await install(client);
        await installCrds(client, [before]);
        await installCrds(client, [after]);
        expect(await hasColor(client)).toBe(true);
        // And back, as kubectl does.
        await client
          .scoped({ fieldManager: "kubectl" })
          .apply(CustomResourceDefinition, before.crd(), {});
        expect(await hasColor(client)).toBe(false);
      });
    });

    test("rejects changing a CRD of another manager, with the manager and the fix", async () => {
      await withClient(async (client) => {
        await client
          .scoped({ fieldManager: "argocd-controller" })
          .apply(CustomResourceDefinition, before.crd());
        await installCrds(client, [before]);
        await expect(installCrds(client, [after])).rejects.toMatchObject({
          code: "field_conflict",
          message: expect.stringMatching(
            /spec\.versions.* \("argocd-controller"\);.*--apply --force/,
          ) as string,
        });
        expect(await hasColor(client)).toBe(false);
        await installCrds(client, [after], { force: true });
        expect(await hasColor(client)).toBe(true);
      });
    });
  },
);
