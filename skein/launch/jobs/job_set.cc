#include "skein/launch/jobs/job_set.h"

#include <algorithm>
#include <string_view>

#include "skein/base/ending.h"
#include "skein/base/error.h"
#include "skein/base/text/json_text.h"

namespace skein {
namespace {

constexpr size_t kMaxName = 40;  // of 63, since pods append the job, its number and theirs
constexpr std::string_view kConfigFolder = "/etc/skein";
constexpr const char* kJob = "node";
constexpr const char* kContainer = "skein";

bool is_label_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
}

void check_name(std::string_view what, const std::string& name, size_t most) {
  const bool fits = !name.empty() && name.size() <= most && name.front() >= 'a' &&
                    name.front() <= 'z' && name.back() != '-' &&
                    std::all_of(name.begin(), name.end(), is_label_character);
  if (fits) return;
  fail(ErrorCode::kUsage,
       "{} is \"{}\": expected at most {} lower-case letters, digits and '-', beginning with a "
       "letter and not ending with '-'",
       what, name.substr(0, 100), most);
}

OrderedJson metadata(const JobSetRun& run) {
  OrderedJson metadata = {{"name", run.name}};
  if (!run.space.empty()) metadata["namespace"] = run.space;
  metadata["labels"] = {{"app.kubernetes.io/name", "skein"}};
  return metadata;
}

OrderedJson config_map(const JobSetRun& run) {
  OrderedJson files = {{"config.toml", run.config}};
  if (!run.model.empty()) files["model.json"] = run.model;
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata", metadata(run)},
          {"data", std::move(files)}};
}

OrderedJson resources(const JobSetRun& run) {
  OrderedJson requests = {{"cpu", std::to_string(run.cpus_per_node)}};
  OrderedJson limits = OrderedJson::object();
  if (run.gpus_per_node > 0) limits["nvidia.com/gpu"] = std::to_string(run.gpus_per_node);
  for (const auto& [name, quantity] : run.resources) {
    if (name == "cpu") {
      requests[name] = quantity;
    } else {
      limits[name] = quantity;  // what is not said is asked for as much
    }
  }
  OrderedJson both = {{"requests", std::move(requests)}};
  if (!limits.empty()) both["limits"] = std::move(limits);
  return both;
}

OrderedJson container(const JobSetRun& run) {
  OrderedJson mounts = {{{"name", "config"}, {"mountPath", kConfigFolder}, {"readOnly", true}},
                        {{"name", "shared-memory"}, {"mountPath", "/dev/shm"}}};
  for (size_t i = 0; i < run.volumes.size(); ++i) {
    mounts.push_back({{"name", fmt::format("volume-{}", i)}, {"mountPath", run.volumes[i].mount}});
  }
  const OrderedJson pod_name = {{"fieldRef", {{"fieldPath", "metadata.name"}}}};
  const OrderedJson node = {{"name", "SKEIN_NODE"}, {"valueFrom", pod_name}};
  return {{"name", kContainer},
          {"image", run.image},
          {"command", {run.program, "train", fmt::format("{}/config.toml", kConfigFolder)}},
          {"env", OrderedJson::array({node})},
          {"resources", resources(run)},
          {"volumeMounts", std::move(mounts)}};
}

OrderedJson volumes(const JobSetRun& run) {
  OrderedJson memory = {{"medium", "Memory"}};
  if (!run.shared_memory.empty()) memory["sizeLimit"] = run.shared_memory;
  OrderedJson volumes = {{{"name", "config"}, {"configMap", {{"name", run.name}}}},
                         {{"name", "shared-memory"}, {"emptyDir", std::move(memory)}}};
  for (size_t i = 0; i < run.volumes.size(); ++i) {
    volumes.push_back({{"name", fmt::format("volume-{}", i)},
                       {"persistentVolumeClaim", {{"claimName", run.volumes[i].claim}}}});
  }
  return volumes;
}

OrderedJson exit_code_rule(const char* action, int code) {
  return {{"action", action},
          {"onExitCodes",
           {{"containerName", kContainer},
            {"operator", "In"},
            {"values", OrderedJson::array({code})}}}};
}

OrderedJson job(const JobSetRun& run) {
  const OrderedJson disruption = {{"type", "DisruptionTarget"}, {"status", "True"}};
  OrderedJson spec = {
      {"completionMode", "Indexed"},
      {"completions", run.max_nodes},
      {"parallelism", run.max_nodes},
      {"backoffLimit", 0},
      {"podFailurePolicy",
       {{"rules",
         {exit_code_rule("FailJob", kExitUsage),
          exit_code_rule("Ignore", kExitRequeue),
          {{"action", "Ignore"}, {"onPodConditions", OrderedJson::array({disruption})}}}}}}};
  if (run.min_nodes < run.max_nodes) {
    const OrderedJson rule = {{"succeededCount", run.min_nodes}};
    spec["successPolicy"] = {{"rules", OrderedJson::array({rule})}};
  }
  spec["template"] = {{"spec",
                       {{"restartPolicy", "Never"},
                        {"terminationGracePeriodSeconds", run.grace_s},
                        {"containers", OrderedJson::array({container(run)})},
                        {"volumes", volumes(run)}}}};
  return spec;
}

OrderedJson job_set(const JobSetRun& run) {
  const OrderedJson mistake = {{"name", "mistake"},
                               {"action", "FailJobSet"},
                               {"onJobFailureReasons", OrderedJson::array({"PodFailurePolicy"})}};
  const OrderedJson nodes = {{"name", kJob}, {"replicas", 1}, {"template", {{"spec", job(run)}}}};
  return {
      {"apiVersion", "jobset.x-k8s.io/v1alpha2"},
      {"kind", "JobSet"},
      {"metadata", metadata(run)},
      {"spec",
       {{"failurePolicy", {{"maxRestarts", run.retries}, {"rules", OrderedJson::array({mistake})}}},
        {"network", {{"enableDNSHostnames", true}, {"publishNotReadyAddresses", true}}},
        {"replicatedJobs", OrderedJson::array({nodes})}}}};
}

}  // namespace

std::string job_set_name(const std::string& run) {
  std::string name;
  for (const char c : run) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    name += is_label_character(lower) ? lower : '-';
  }
  if (name.empty() || name.front() < 'a' || name.front() > 'z') name = "skein-" + name;
  name = name.substr(0, kMaxName);
  while (name.back() == '-') name.pop_back();
  return name;
}

JobSetRun::Volume parse_volume(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string mount = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (!mount.starts_with('/') || mount == "/" || colon == 0) {
    fail(ErrorCode::kUsage,
         "--volume is \"{}\": expected CLAIM:/MOUNT, a PersistentVolumeClaim and the folder that "
         "pods see it as",
         text.substr(0, 200));
  }
  return {text.substr(0, colon), mount};
}

std::string job_set_manifest(const JobSetRun& run) {
  check_name("the JobSet's name", run.name, kMaxName);
  if (!run.space.empty()) check_name("--namespace", run.space, 63);
  const OrderedJson list = {{"apiVersion", "v1"},
                            {"kind", "List"},
                            {"items", OrderedJson::array({config_map(run), job_set(run)})}};
  return exact_json(list, "the JobSet", 2) + "\n";
}

}  // namespace skein
