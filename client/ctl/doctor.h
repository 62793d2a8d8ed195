/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_CLIENT_CTL_DOCTOR_H
#define FSBOX_CLIENT_CTL_DOCTOR_H

/*
 * What fsbox needs of a machine, step by step. Each step looks for itself and never fails: what it
 * cannot find out is a finding, too.
 */

#include "client/ctl/output.h"

enum finding { FINDING_OK, FINDING_WARN, FINDING_FAIL, FINDING_SKIP };

/*
 * @name    what was looked at: "kernel", "user namespaces"
 * @detail  what was found, for people
 * @fix     the exact command or change that helps; empty where nothing needs to be done
 */
struct check {
	const char *name;
	enum finding finding;
	char detail[256];
	char fix[384];
};

/* All steps, @count of them at most DOCTOR_CHECKS, in the order of a newcomer's troubles. */
#define DOCTOR_CHECKS 16
struct doctor {
	struct check checks[DOCTOR_CHECKS];
	size_t count;
};

/* The next check to fill. */
struct check *doctor_add(struct doctor *doctor, const char *name);

/* Steps about the machine (doctor_host.c) and about the daemon (doctor.c). */
void doctor_check_host(struct doctor *doctor);

#endif
