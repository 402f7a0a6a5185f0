// A request to stop before anything handles it: SIGTERM, SIGUSR1, SIGINT and SIGHUP end this
// process with exit code 75, since nothing has begun that could be saved (docs/launching.md). The
// supervisor and the training loop put their own handling in front of it. What was ignored stays
// ignored, as SIGHUP under nohup.
#pragma once

namespace skein {

// To be called first of all, in a process that is no supervisor's worker: of those a supervisor
// tells by the signal that they had not begun.
void answer_early_stops();

// Blocks these signals while the program restarts itself (base/machine/short_spins.h). They stay
// pending, and the restarted program answers them.
void hold_early_stops();

}  // namespace skein
