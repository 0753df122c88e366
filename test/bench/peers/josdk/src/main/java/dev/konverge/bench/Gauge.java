package dev.konverge.bench;

import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.util.List;

@Group("bench.konverge.dev")
@Version("v1")
public class Gauge extends CustomResource<Gauge.Spec, Gauge.Status> implements Namespaced {
  public static class Spec {
    public long step;
    public List<Part> parts;
  }

  public static class Part {
    public String name;
    public String value;
  }

  public static class Status {
    public long seen;
  }
}
