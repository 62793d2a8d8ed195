/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/spawner/jobnet.h"

#include <string.h>
#include <unistd.h>

#include "common/netpolicy.h"
#include "common/scope.h"
#include "daemon/spawner/job.h"
#include "daemon/spawner/sealed.h"
#include "daemon/spawner/spawner.h"

static void close_one(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

int jobnet_take(struct job *job, const void *bytes, size_t size, struct error *err)
{
	AUTO(netpolicy_deinit) struct netpolicy policy = NETPOLICY_INIT;
	struct jobnet *jobnet = &job->net;
	int r = 0;

	close_one(&jobnet->policy_fd);
	memset(&jobnet->net, 0, sizeof(jobnet->net));
	if (size == 0)
		return 0;
	r = netpolicy_decode(&policy, bytes, size, err);
	if (r < 0)
		return r;
	if (policy.forward_count > LIMIT_FORWARDS)
		return error_set(err, ERR_BAD_FRAME, 0, "%zu forwarded ports",
				 policy.forward_count);
	jobnet->net.forward_count = (uint32_t)policy.forward_count;
	if (policy.forward_count > 0)
		memcpy(jobnet->net.forwards, policy.forwards,
		       policy.forward_count * sizeof(policy.forwards[0]));
	return sealed_create("fsbox network", bytes, size, 0400, &jobnet->policy_fd, err);
}

/* What plan_check() cannot know: it sees the mode alone, and holds that against max-net. */
static int check_mode(const struct job *job, enum net_mode mode, struct error *err)
{
	if ((mode == NET_PROXY) == (job->net.policy_fd >= 0))
		return 0;
	return error_set(err, ERR_POLICY_INVALID, 0, "network '%s' %s a network policy",
			 net_mode_name(mode), mode == NET_PROXY ? "needs" : "has no use for");
}

int jobnet_begin(struct job *job, const struct plan *plan, struct error *err)
{
	struct jobnet *jobnet = &job->net;
	int r = check_mode(job, plan->net, err);

	if (r < 0 || jobnet->policy_fd < 0)
		return r;
	jobnet_end(job); /* of the leader before */
	jobnet->net.proxy = true;
	r = egresslink_job(&job->spawner->egress, job->id, job->identity.uid, jobnet->policy_fd,
			   &jobnet->init_fd, err);
	jobnet->served = r == 0;
	return r;
}

void jobnet_lend(const struct job *job, struct builder_input *input)
{
	input->egress_fd = job->net.init_fd;
	input->net = job->net.net;
}

void jobnet_lent(struct job *job)
{
	close_one(&job->net.init_fd);
}

void jobnet_settled(struct job *job)
{
	close_one(&job->net.policy_fd);
}

void jobnet_end(struct job *job)
{
	jobnet_lent(job);
	if (job->net.served)
		egresslink_end(&job->spawner->egress, job->id);
	job->net.served = false;
}

void jobnet_deinit(struct job *job)
{
	jobnet_lent(job);
	jobnet_settled(job);
}
