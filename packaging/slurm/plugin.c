/* The SPANK plugin: `srun --tributary=...`, the variables of every task, and a token file for each job.
 *
 * slurmd and slurmstepd load the plugin on each node; srun, salloc and sbatch load it on the host where they run. The
 * plugin waits for the manager only where jobs have tokens of their own, and then at most 5 seconds. No mistake keeps a
 * job from starting, except one in the user's own option.
 */
#include <slurm/spank.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "packaging/slurm/job_token.h"
#include "packaging/slurm/options.h"
#include "packaging/slurm/settings.h"

SPANK_PLUGIN(tributary, 1)

static const char kSettingsPath[] = "/etc/tributary/slurm.conf";
static const char kJobPrefix[] = "slurm-";

static struct TributarySettings settings;
static struct TributaryOptions options;

static int take_option(int value, const char* text, int remote) {
  char sentence[kSentenceBytesMax];
  (void)value;
  (void)remote;
  if (tributary_read_options(text, &options, sentence) == 0) return 0;
  slurm_error("--tributary: %s", sentence);
  return -1;
}

static struct spank_option option = {
    .name = "tributary",
    .arginfo = "KEY=VALUE[,...]",
    .usage =
        "in-network reduction: aggregators=1..4096 (reserves them), lanes=auto|1..16, "
        "path=auto|in-network|fallback, priority=low|normal|high, transport=tcp|udp|verbs|dpdk",
    .has_arg = 1,
    .val = 0,
    .cb = take_option,
};

/* Reads the settings. Returns -1 if plugstack.conf is wrong. It reports mistakes in the settings themselves, and jobs
   then get no variables and no token. */
static int load_settings(int argument_count, char** arguments) {
  char sentence[kSentenceBytesMax];
  const char* path = kSettingsPath;
  for (int i = 0; i < argument_count; ++i) {
    if (strncmp(arguments[i], "settings=", 9) == 0) {
      path = arguments[i] + 9;
    } else {
      slurm_error("tributary: plugstack.conf has the argument '%s'; settings=FILE alone is known", arguments[i]);
      return -1;
    }
  }
  if (tributary_read_settings(path, &settings, sentence) != 0) {
    slurm_error("tributary: %s", sentence);
    settings.manager[0] = '\0';
  }
  return 0;
}

/* Slurm calls this in each process that loads the plugin, except those of the job's prolog and epilog. */
int slurm_spank_init(spank_t spank, int argument_count, char** arguments) {
  const spank_context_t context = spank_context();
  if (load_settings(argument_count, arguments) != 0) return -1;
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE) return 0;
  return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/* Slurm calls this after it has read the options. Where the job is submitted, the plugin passes on what is for the
   prolog of the controller. */
int slurm_spank_init_post_opt(spank_t spank, int argument_count, char** arguments) {
  const spank_context_t context = spank_context();
  (void)argument_count;
  (void)arguments;
  if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR) return 0;
  for (size_t i = 0; i < options.count; ++i) {
    const struct TributaryOption* const given = &options.given[i];
    if (given->for_controller && spank_job_control_setenv(spank, given->variable, given->value, 1) != ESPANK_SUCCESS)
      slurm_error("tributary: %s=%s does not reach the controller", given->variable, given->value);
  }
  return 0;
}

/* Sets a variable, unless the user has set it. A value that begins with `ours` comes from another job of the user. */
static void set_unless_given(spank_t spank, const char* variable, const char* value, const char* ours) {
  char present[kSettingBytesMax] = "";
  const int given = spank_getenv(spank, variable, present, sizeof present) != ESPANK_ENV_NOEXIST;
  if (!given || (ours[0] != '\0' && strncmp(present, ours, strlen(ours)) == 0))
    (void)spank_setenv(spank, variable, value, 1);
}

static void set_token_file(spank_t spank, uint32_t job) {
  char path[2 * kSettingBytesMax];
  tributary_job_token_path(settings.job_directory, job, path, sizeof path);
  /* Sets no name of a file that does not exist: the job would fail with an error. Without a token, the manager refuses
     the group, and the ranks report this and go on between themselves. */
  if (access(path, R_OK) == 0) set_unless_given(spank, "TRIBUTARY_TOKEN_FILE", path, settings.job_directory);
}

/* Sets the node's name in Slurm, which is the host's name in the topology. */
static void set_host(spank_t spank) {
  char node[kSettingBytesMax] = "";
  if (spank_getenv(spank, "SLURMD_NODENAME", node, sizeof node) == ESPANK_SUCCESS) {
    (void)spank_setenv(spank, "TRIBUTARY_HOST_ID", node, 1); /* srun passes on the name of its own host */
  }
}

int slurm_spank_task_init(spank_t spank, int argument_count, char** arguments) {
  uint32_t job = 0;
  (void)argument_count;
  (void)arguments;
  for (size_t i = 0; i < options.count; ++i) {
    if (!options.given[i].for_controller)
      (void)spank_setenv(spank, options.given[i].variable, options.given[i].value, 1);
  }
  if (settings.manager[0] == '\0') return 0;
  set_unless_given(spank, "TRIBUTARY_MANAGER", settings.manager, "");
  if (settings.tls_ca[0] != '\0') set_unless_given(spank, "TRIBUTARY_TLS_CA", settings.tls_ca, "");
  set_host(spank);
  if (spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS) {
    char name[sizeof kJobPrefix + 16];
    (void)snprintf(name, sizeof name, "%s%u", kJobPrefix, job);
    set_unless_given(spank, "TRIBUTARY_JOB", name, kJobPrefix);
    set_token_file(spank, job);
  }
  return 0;
}

/* Runs as root on each node of the job before its first task. A failure here would take the node out of service, so the
   job starts without a token instead. */
int slurm_spank_job_prolog(spank_t spank, int argument_count, char** arguments) {
  char sentence[kSentenceBytesMax];
  uint32_t job = 0;
  uid_t user = 0;
  if (load_settings(argument_count, arguments) != 0 || settings.manager[0] == '\0') return 0;
  if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
      spank_get_item(spank, S_JOB_UID, &user) != ESPANK_SUCCESS) {
    slurm_error("tributary: Slurm tells neither job nor user, so the job gets no token");
    return 0;
  }
  const int made = settings.job_token_life[0] != '\0'
                       ? tributary_issue_job_token(&settings, job, user, sentence)
                       : tributary_make_job_token(settings.job_directory, job, user, settings.token_file, sentence);
  if (made != 0) {
    slurm_error("tributary: job %u starts without a token, and so without trees: %s", job, sentence);
  }
  return 0;
}

/* Revokes the job's token. If the manager does not answer, the token stays valid for this job until it expires. */
int slurm_spank_job_epilog(spank_t spank, int argument_count, char** arguments) {
  char sentence[kSentenceBytesMax];
  uint32_t job = 0;
  if (load_settings(argument_count, arguments) != 0 || settings.manager[0] == '\0') return 0;
  if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) return 0;
  if (settings.job_token_life[0] != '\0' && tributary_revoke_job_token(&settings, job, sentence) != 0)
    slurm_error("tributary: the token of job %u is good until its end, as it was not revoked: %s", job, sentence);
  tributary_remove_job_token(settings.job_directory, job);
  return 0;
}
