import { ConfigMap } from "@konverge/kube/kinds";
import type { Config } from "@konverge/worker";
import { expect, onTestFinished, test } from "vitest";
import { blockOf, importText } from "../integration/docs/load-block.ts";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { useReceivers } from "../integration/notify/receiver.ts";
import { useQueues } from "../integration/queue/queue-harness.ts";
import { until } from "../support/until.ts";
import { openDocsStage, TOKEN } from "./docs-stage.ts";

const queues = useQueues();
const openReceiver = useReceivers();

/** The part of an alert that the page describes. */
interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly endsAt: string;
}

test("docs/notifications.md: a dead letter and its end reach Slack and Alertmanager, and are listed", async () => {
  const server = await startEmbeddedServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const slack = await openReceiver("/services/T0/B0/canary-5e1f");
  const alertmanager = await openReceiver("/api/v2/alerts");
  const text = blockOf("docs/notifications.md ts 1")
    .text.replace(
      '{ defineConfig, defineController, webhook } from "konverge"',
      '{ defineConfig, webhook } from "@konverge/worker"; import { defineController } from "@konverge/engine"',
    )
    .replace('from "konverge/kinds"', 'from "@konverge/kube/kinds"');
  const { default: page } = (await importText(text)) as { readonly default: Config };
  const notify = (page.notify ?? []).map((rule) => ({ ...rule, group: "0s" as const }));
  const { type } = await openDocsStage(
    queues,
    server,
    { ...page, notify },
    {
      SLACK_URL: slack.url,
      ALERTMANAGER_URL: alertmanager.url,
    },
  );
  const place = { namespace: "default", name: "broken" };
  await server.client.create(ConfigMap, { metadata: place, data: { "settings.json": "{" } });
  const alerts = () => alertmanager.messages.flatMap(({ body }) => body as readonly Alert[]);
  await until(
    "the dead letter is reported",
    () => slack.messages.length > 0 && alerts().length > 0,
  );
  expect(slack.messages[0]?.body).toMatchObject({ text: "1 dead-lettered key on default" });
  expect(slack.messages[0]?.text).toContain("settings: default/broken is dead-lettered");
  expect(alerts()[0]).toMatchObject({
    labels: { alertname: "KonvergeDeadLetter", cluster: "default", group: "settings" },
    annotations: { summary: "settings: 1 dead-lettered key on default" },
  });
  await server.client.patch(
    ConfigMap,
    place,
    { type: "merge", body: { data: { "settings.json": "{}" } } },
    { unguarded: true },
  );
  await until("its end is reported", () =>
    alerts().some(({ endsAt }) => Date.parse(endsAt) <= Date.now()),
  );
  expect(slack.messages).toHaveLength(1);

  const output = await type(blockOf("docs/notifications.md sh 1").text, { KONVERGE_TOKEN: TOKEN });
  expect(output).toMatch(/ slack +sent +1 +0 +1 +HTTP 200 /);
  expect(output).toMatch(/ alertmanager +sent +0 +1 +1 +HTTP 200 /);
  expect(output).not.toContain("canary-5e1f");
});
