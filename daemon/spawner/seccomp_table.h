/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FSBOX_DAEMON_SPAWNER_SECCOMP_TABLE_H
#define FSBOX_DAEMON_SPAWNER_SECCOMP_TABLE_H

/*
 * What a job may not ask the kernel for, and why: the one table from which seccomp_generate.c makes
 * the filter when fsbox is built, and which test_seccomp.c holds against it.
 *
 * Everything else is allowed: the filter narrows what a job without capabilities, in its own
 * namespaces, could still reach; it is not the boundary itself. Tools for developers (compilers,
 * debuggers, node, python, go, git) must work.
 *
 * Arguments of type int are compared by their low 32 bits, which is all that the kernel looks at: an
 * equality over 64 bits is passed by TIOCSTI | 1 << 32.
 *
 * Allowed on purpose:
 *	ptrace                debuggers, strace; pid 1 is out of reach: it is not dumpable and
 *	                      nobody inside has a capability
 *	kill, pidfd_*         pid 1 ignores what comes from inside
 *	name_to_handle_at     yields numbers that nobody inside can open (open_by_handle_at)
 *	set_mempolicy         concerns the caller alone (numactl)
 *	statmount, listmount  say as much as /proc/self/mountinfo
 *	seccomp, landlock_*   can only narrow further (browsers, nested sandboxes)
 *	io_submit and kin     old asynchronous I/O; databases use it
 *	mknod                 for FIFOs and sockets; devices need a capability
 *	memfd_secret          bounded by RLIMIT_MEMLOCK
 *	unshare, clone        of files, directories, memory; not of namespaces
 */

#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/*
 * The highest number that was looked at (file_setattr, Linux 6.17). Later ones do not exist for a
 * job: ENOSYS, which programs know how to take from an older kernel.
 */
#define SECCOMP_HIGHEST 469

/* Numbers that the headers of the build machine may not know yet; the same on every architecture. */
#ifndef __NR_lsm_set_self_attr
#define __NR_lsm_set_self_attr 460
#endif
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467
#endif

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

/*
 * X(syscall, errno, condition)
 *
 *	ALWAYS               whatever the arguments
 *	LOW32(n, value)      the low 32 bits of argument n are value
 *	BIT(n, bit)          argument n has this bit
 */
#define SECCOMP_DENY(X)                                                                              \
	/* Another file tree. Mounts are the policy. */                                              \
	X(mount, EPERM, ALWAYS)                                                                      \
	X(umount2, EPERM, ALWAYS)                                                                    \
	X(pivot_root, EPERM, ALWAYS)                                                                 \
	X(chroot, EPERM, ALWAYS)                                                                     \
	X(open_tree, EPERM, ALWAYS)                                                                  \
	X(open_tree_attr, EPERM, ALWAYS)                                                             \
	X(move_mount, EPERM, ALWAYS)                                                                 \
	X(fsopen, EPERM, ALWAYS)                                                                     \
	X(fsconfig, EPERM, ALWAYS)                                                                   \
	X(fsmount, EPERM, ALWAYS)                                                                    \
	X(fspick, EPERM, ALWAYS)                                                                     \
	X(mount_setattr, EPERM, ALWAYS)                                                              \
	/* Other namespaces (R18): they bring capabilities, and undo read-only leaves and pins. */   \
	X(setns, EPERM, ALWAYS)                                                                      \
	X(unshare, EPERM, BIT(0, CLONE_NEWNS))                                                       \
	X(unshare, EPERM, BIT(0, CLONE_NEWCGROUP))                                                   \
	X(unshare, EPERM, BIT(0, CLONE_NEWUTS))                                                      \
	X(unshare, EPERM, BIT(0, CLONE_NEWIPC))                                                      \
	X(unshare, EPERM, BIT(0, CLONE_NEWUSER))                                                     \
	X(unshare, EPERM, BIT(0, CLONE_NEWPID))                                                      \
	X(unshare, EPERM, BIT(0, CLONE_NEWNET))                                                      \
	X(unshare, EPERM, BIT(0, CLONE_NEWTIME))                                                     \
	X(clone, EPERM, BIT(0, CLONE_NEWNS))                                                         \
	X(clone, EPERM, BIT(0, CLONE_NEWCGROUP))                                                     \
	X(clone, EPERM, BIT(0, CLONE_NEWUTS))                                                        \
	X(clone, EPERM, BIT(0, CLONE_NEWIPC))                                                        \
	X(clone, EPERM, BIT(0, CLONE_NEWUSER))                                                       \
	X(clone, EPERM, BIT(0, CLONE_NEWPID))                                                        \
	X(clone, EPERM, BIT(0, CLONE_NEWNET))                                                        \
	/* Its flags lie in memory, where no filter can look; libraries fall back to clone. */       \
	X(clone3, ENOSYS, ALWAYS)                                                                    \
	/* Large parts of the kernel with a history, which no build tool needs. */                   \
	X(bpf, EPERM, ALWAYS)                                                                        \
	X(perf_event_open, EPERM, ALWAYS)                                                            \
	X(userfaultfd, EPERM, ALWAYS)                                                                \
	X(io_uring_setup, EPERM, ALWAYS)                                                             \
	X(io_uring_enter, EPERM, ALWAYS)                                                             \
	X(io_uring_register, EPERM, ALWAYS)                                                          \
	X(fanotify_init, EPERM, ALWAYS)                                                              \
	X(lookup_dcookie, EPERM, ALWAYS)                                                             \
	X(nfsservctl, EPERM, ALWAYS)                                                                 \
	/* Keyrings are the user's, not the job's. */                                                \
	X(keyctl, EPERM, ALWAYS)                                                                     \
	X(add_key, EPERM, ALWAYS)                                                                    \
	X(request_key, EPERM, ALWAYS)                                                                \
	/* Other processes' memory and descriptors, past ptrace's own rules. */                      \
	X(process_vm_readv, EPERM, ALWAYS)                                                           \
	X(process_vm_writev, EPERM, ALWAYS)                                                          \
	X(kcmp, EPERM, ALWAYS)                                                                       \
	X(pidfd_getfd, EPERM, ALWAYS)                                                                \
	/* Files by handle instead of by path. */                                                    \
	X(open_by_handle_at, EPERM, ALWAYS)                                                          \
	/* The machine. */                                                                           \
	X(init_module, EPERM, ALWAYS)                                                                \
	X(finit_module, EPERM, ALWAYS)                                                               \
	X(delete_module, EPERM, ALWAYS)                                                              \
	X(kexec_load, EPERM, ALWAYS)                                                                 \
	X(kexec_file_load, EPERM, ALWAYS)                                                            \
	X(reboot, EPERM, ALWAYS)                                                                     \
	X(swapon, EPERM, ALWAYS)                                                                     \
	X(swapoff, EPERM, ALWAYS)                                                                    \
	X(acct, EPERM, ALWAYS)                                                                       \
	X(quotactl, EPERM, ALWAYS)                                                                   \
	X(quotactl_fd, EPERM, ALWAYS)                                                                \
	X(syslog, EPERM, ALWAYS)                                                                     \
	X(settimeofday, EPERM, ALWAYS)                                                               \
	X(clock_settime, EPERM, ALWAYS)                                                              \
	X(clock_adjtime, EPERM, ALWAYS)                                                              \
	X(adjtimex, EPERM, ALWAYS)                                                                   \
	X(vhangup, EPERM, ALWAYS)                                                                    \
	X(sethostname, EPERM, ALWAYS)                                                                \
	X(setdomainname, EPERM, ALWAYS)                                                              \
	X(lsm_set_self_attr, EPERM, ALWAYS)                                                          \
	/* Memory placement of others, and the shared machinery behind it. */                        \
	X(mbind, EPERM, ALWAYS)                                                                      \
	X(move_pages, EPERM, ALWAYS)                                                                 \
	X(migrate_pages, EPERM, ALWAYS)                                                              \
	/* Typing into a terminal; selecting on a console; changing what drives a terminal (R17). */ \
	X(ioctl, EPERM, LOW32(1, TIOCSTI))                                                           \
	X(ioctl, EPERM, LOW32(1, TIOCLINUX))                                                         \
	X(ioctl, EPERM, LOW32(1, TIOCSETD))                                                          \
	/* Pid 1 of the job keeps its limits and its share of the processor (R17). */                \
	X(prlimit64, EPERM, LOW32(0, 1))                                                             \
	X(sched_setaffinity, EPERM, LOW32(0, 1))                                                     \
	X(sched_setattr, EPERM, LOW32(0, 1))                                                         \
	X(sched_setparam, EPERM, LOW32(0, 1))                                                        \
	X(sched_setscheduler, EPERM, LOW32(0, 1))                                                    \
	/* Pid 1 belongs to the set of the user's processes, and its group is number 1. */           \
	X(setpriority, EPERM, LOW32(0, PRIO_USER))                                                   \
	X(setpriority, EPERM, LOW32(1, 1))                                                           \
	X(ioprio_set, EPERM, LOW32(0, IOPRIO_WHO_USER))                                              \
	X(ioprio_set, EPERM, LOW32(1, 1))                                                            \
	SECCOMP_DENY_MACHINE(X)

/* Direct hardware access and segments, on x86 only. */
#ifdef __x86_64__
#define SECCOMP_DENY_MACHINE(X)      \
	X(iopl, EPERM, ALWAYS)       \
	X(ioperm, EPERM, ALWAYS)     \
	X(modify_ldt, EPERM, ALWAYS) \
	X(uselib, EPERM, ALWAYS)
#else
#define SECCOMP_DENY_MACHINE(X)
#endif

/*
 * The other way round: these system calls are refused with EPERM unless one row fits. All compared by
 * their low 32 bits.
 *
 * X(syscall, argument, value, second argument or SECCOMP_ANY, its value)
 *
 * socket: other families reach past an empty network namespace (AF_VSOCK was seen to) or into the
 * kernel (AF_ALG, AF_PACKET). personality: what debuggers need, and asking; the rest loosens memory
 * protection.
 */
#define SECCOMP_ANY 0xff
#define SECCOMP_ONLY(X)                                      \
	X(socket, 0, AF_UNIX, SECCOMP_ANY, 0)                \
	X(socket, 0, AF_INET, SECCOMP_ANY, 0)                \
	X(socket, 0, AF_INET6, SECCOMP_ANY, 0)               \
	X(socket, 0, AF_NETLINK, 2, NETLINK_ROUTE)           \
	X(personality, 0, PER_LINUX, SECCOMP_ANY, 0)         \
	X(personality, 0, ADDR_NO_RANDOMIZE, SECCOMP_ANY, 0) \
	X(personality, 0, 0xffffffff, SECCOMP_ANY, 0)

#endif
