import { defineController, setCondition } from "konverge";
import { ConfigMap } from "konverge/kinds";
import { Greeting } from "./greeting.ts";

/** Keeps a ConfigMap with the text of each greeting. */
export const greeter = defineController({
  name: "greeter",
  for: Greeting,
  owns: [ConfigMap],
  async reconcile({ object: greeting, kube }) {
    const { name, generation: observedGeneration = 0 } = greeting.metadata;
    const text = `${greeting.spec.salutation}, ${greeting.spec.name}!`;
    const configMap = await kube.find(ConfigMap, name);
    if (configMap === undefined) {
      await kube.create(ConfigMap, { name, ownedBy: greeting, data: { text } });
    } else {
      // Sends only the difference, and nothing if there is none. Fields of other writers stay.
      await kube.mutate(configMap, (draft) => {
        draft.data = { ...draft.data, text };
      });
    }
    await kube.mutateStatus(greeting, (draft) => {
      Object.assign(draft.status, { text, observedGeneration });
      setCondition(draft, { type: "Ready", status: "True", reason: "Written", observedGeneration });
    });
  },
});
