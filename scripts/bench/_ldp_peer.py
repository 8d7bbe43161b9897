"""Runs in the peers' environment: users per second and bytes per report, as JSON."""

import json
import pickle
import sys
import time

import numpy as np


def codes_for(name, k):
    return np.random.default_rng(1).integers(0, k, USERS[name]).tolist()


def pure_ldp(k, epsilon):
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    yield "grr", DEClient(epsilon, k, lambda v: v), DEServer(epsilon, k, lambda v: v)
    yield (
        "oue",
        UEClient(epsilon, k, use_oue=True, index_mapper=lambda v: v),
        UEServer(epsilon, k, use_oue=True, index_mapper=lambda v: v),
    )
    yield (
        "olh",
        LHClient(epsilon, k, use_olh=True, index_mapper=lambda v: v),
        LHServer(epsilon, k, use_olh=True, index_mapper=lambda v: v),
    )


def time_pure_ldp(k, epsilon):
    found = {}
    for name, client, server in pure_ldp(k, epsilon):
        codes = codes_for(name, k)
        start = time.perf_counter()
        reports = [client.privatise(code) for code in codes]
        middle = time.perf_counter()
        for report in reports:
            server.aggregate(report)
        server.estimate_all(range(k), suppress_warnings=True)
        end = time.perf_counter()
        found[name] = [middle - start, end - middle, len(pickle.dumps(reports[0]))]
    return found


def time_multi_freq(k, epsilon):
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    jobs = {
        "grr": (
            lambda c: GRR_Client(c, k, epsilon),
            lambda r: GRR_Aggregator_MI(r, k, epsilon),
        ),
        "oue": (lambda c: UE_Client(c, k, epsilon), lambda r: UE_Aggregator_MI(r, epsilon)),
        "olh": (lambda c: LH_Client(c, k, epsilon), lambda r: LH_Aggregator_MI(r, k, epsilon)),
    }
    found = {}
    for name, (client, server) in jobs.items():
        codes = codes_for(name, k)
        server([client(code) for code in codes[:100]])  # compiles
        start = time.perf_counter()
        reports = [client(code) for code in codes]
        middle = time.perf_counter()
        server(reports)
        end = time.perf_counter()
        found[name] = [middle - start, end - middle, len(pickle.dumps(reports[0]))]
    return found


if __name__ == "__main__":
    USERS, k, epsilon = json.loads(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    found = {
        "pure-ldp": time_pure_ldp(k, epsilon),
        "multi-freq-ldpy": time_multi_freq(k, epsilon),
    }
    print(json.dumps(found))
