/* The administrator's settings, /etc/tributary/slurm.conf: lines of `key = value`, and comments after #. */
#ifndef TRIBUTARY_PACKAGING_SLURM_SETTINGS_H
#define TRIBUTARY_PACKAGING_SLURM_SETTINGS_H

#ifdef __cplusplus
extern "C" {
#endif

enum { kSettingBytesMax = 256 };

struct TributarySettings {
  char manager[kSettingBytesMax];        /* empty: no variables or tokens for jobs */
  char tls_ca[kSettingBytesMax];         /* the CA of a manager of https; empty: none */
  char token_file[kSettingBytesMax];     /* has the job token, or an operator's token that makes tokens */
  char job_directory[kSettingBytesMax];  /* folder of each job's own token */
  char job_token_life[kSettingBytesMax]; /* such as 7d: each job gets its own token; empty: a copy of token_file */
  char command[kSettingBytesMax];        /* the program tributary, which makes and revokes tokens */
  /* the most aggregators that a job may reserve; empty or 0: none. Only the controller's programs use it */
  char reservation_max[kSettingBytesMax];
};

/* Returns 0, or -1 with a sentence in `sentence`, of kSentenceBytesMax bytes (options.h). If the file is missing, the
   settings keep their defaults; this is no error. */
int tributary_read_settings(const char* path, struct TributarySettings* settings, char* sentence);

#ifdef __cplusplus
}
#endif

#endif
