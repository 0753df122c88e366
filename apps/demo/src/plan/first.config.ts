import { defineConfig, defineController } from "konverge";
import { Deployment, Service } from "konverge/kinds";
import { serviceOf } from "./shop.ts";

/** Version 1 of the operator: each app has a Service. */
const services = defineController({
  name: "services",
  for: Deployment,
  async reconcile({ object, kube }) {
    await kube.apply(Service, serviceOf(object.metadata, "1"));
  },
});

export default defineConfig({ controllers: [services] });
