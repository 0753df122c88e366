import { defineConfig, defineController } from "konverge";
import { Deployment } from "konverge/kinds";
import { OBSERVED } from "./shop.ts";

/** The operator of the shop: it notes the image of each Deployment on the object that the other systems change. */
const imageReport = defineController({
  name: "image-report",
  for: Deployment,
  async reconcile({ object, kube }) {
    await kube.mutate(object, (draft) => {
      const image = draft.spec?.template.spec?.containers[0]?.image ?? "";
      draft.metadata.annotations = { ...draft.metadata.annotations, [OBSERVED]: image };
    });
  },
});

export default defineConfig({
  controllers: [imageReport],
  mutations: {
    kinds: [
      {
        type: Deployment,
        paths: ["/spec/template/spec/containers", "/metadata/annotations/shop.example~1usage"],
      },
    ],
  },
});
