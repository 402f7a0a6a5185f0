#include "skein/base/machine/environment.h"

#include <cstdlib>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr std::string_view kSwitch = "`on`, `off`";

constexpr EnvironmentVariable kVariables[] = {
    {"SKEIN_CPU", "as `device.cpu`",
     "the instruction sets that kernels on a CPU may use, where device.cpu is \"auto\""},
    {"OMP_NUM_THREADS", "a whole number", "compute threads of a worker, where device.threads is 0"},
    {"GOMP_SPINCOUNT", "a whole number",
     "how long waiting threads spin; with neither it nor OMP_WAIT_POLICY the program starts itself "
     "again with 10000"},
    {"OMP_WAIT_POLICY", "`active`, `passive`", "how threads wait, as OpenMP says"},
    {"NO_COLOR", "any text", "no colours on a terminal (https://no-color.org)"},
    {"SKEIN_NODE", "a name", "this machine's in its run; else Slurm's, else that of the host"},
    {"SKEIN_NETWORK_INTERFACE", "a name, such as `eth1`", "where ranks on CPUs meet"},
    {"SKEIN_SHARED_MEMORY", kSwitch, "off: ranks of one machine use the network, too"},
    {"SKEIN_JOB_SECRET", "text", "the run's secret, before launch.secret_file"},
    {"ETCDCTL_CACERT, ETCDCTL_CERT, ETCDCTL_KEY, ETCDCTL_USER, ETCDCTL_PASSWORD", "as for etcdctl",
     "certificates and the user of etcd, where launch.etcd_… is empty"},
    {"SKEIN_ATTENTION", "`plain`, `wgmma`, `cudnn`",
     "on a GPU: attention by these kernels alone; else by the fastest for each shape"},
    {"SKEIN_GRAPHS", kSwitch, "on a GPU, off: kernels are started one by one, not as CUDA graphs"},
    {"SKEIN_EARLY_STARTS", kSwitch, "on a GPU, off: a kernel starts when the one before has ended"},
    {"SKEIN_TUNE", kSwitch, "on a GPU, off: algorithms of products are not measured"},
    {"SKEIN_TASKS", "folders, with `:` between",
     "task files of lm-evaluation-harness: its lm_eval/tasks, or what holds it"},
    {"SKEIN_PYTHON_LIBRARY", "a path",
     "libpython3.N.so.1.0, if Neuron's PJRT plugin calls Python; else its folder tells which"},
    {"SKEIN_CACHE", "a folder", "holds those measurements; else ~/.cache/skein"},
    {"SKEIN_C_LIBRARY", "`own`, `system`",
     "of an archive: run under the C library that is in it, or the system's; else the system's "
     "where it is new enough"},
    {"AWS_ENDPOINT_URL, AWS_REGION, AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY",
     "as for AWS's tools", "the store of objects, and who asks it"},
};

}  // namespace

std::span<const EnvironmentVariable> environment_variables() { return kVariables; }

bool is_switched_on(const char* variable) {
  const char* given = std::getenv(variable);
  const std::string_view wanted = given == nullptr ? "" : given;
  if (wanted.empty() || wanted == "on") return true;
  if (wanted == "off") return false;
  fail(ErrorCode::kUsage, "{}={}: on or off is expected", variable, wanted);
}

}  // namespace skein
