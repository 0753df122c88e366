import { defineController, setCondition } from "konverge";
import { ConfigMap } from "konverge/kinds";
import { Greeting } from "./greeting.ts";

/** Writes each greeting into a ConfigMap of the same name, and keeps it so. */
export const greeter = defineController({
  name: "greeter",
  for: Greeting,
  owns: [ConfigMap],
  async reconcile({ object: greeting, kube }) {
    const { name, generation: observedGeneration = 0 } = greeting.metadata;
    const text = `${greeting.spec.salutation}, ${greeting.spec.name}!`;
    const letter = await kube.find(ConfigMap, name);
    if (letter === undefined) {
      await kube.create(ConfigMap, { name, ownedBy: greeting, data: { text } });
    } else {
      // Only the difference is sent, and none means no write. Who else wrote the ConfigMap keeps what is theirs.
      await kube.mutate(letter, (draft) => {
        draft.data = { ...draft.data, text };
      });
    }
    await kube.mutateStatus(greeting, (draft) => {
      Object.assign(draft.status, { text, observedGeneration });
      setCondition(draft, { type: "Ready", status: "True", reason: "Written", observedGeneration });
    });
  },
});
