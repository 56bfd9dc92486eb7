import time
from datetime import datetime
from tests.acceptance.scenes import *
def show(agent, play, at, full=True):
    for s,p in play.items():
        c=agent.call(p.id)
        print("==",s.name,c["state"],c["effect"],c["cause"],c["reason"],c["attempts_used"], c["result"] and c["result"]["json"], c["error"])
        for e in agent.events(p.id):
            if e["kind"]=="progress": continue
            print("   ",round(datetime.fromisoformat(e["at"].replace("Z","+00:00")).timestamp()-at,2),e["kind"],e["to_state"],e["effect"],e["fence"],{k:v for k,v in e["facts"].items() if k in("grounds","finding","rule","proof","cursor")})
def wait(agent, play, limit=45):
    end=time.time()+limit; op=dict(play)
    while op and time.time()<end:
        for s,p in list(op.items()):
            if agent.call(p.id)["settled"]: op.pop(s)
        time.sleep(.1)
    return list(s.name for s in op)
def brief(agent, play, at):
    for s,p in play.items():
        c=agent.call(p.id)
        ev=[(round(datetime.fromisoformat(e["at"].replace("Z","+00:00")).timestamp()-at,1),e["kind"],e["fence"]) for e in agent.events(p.id) if e["kind"] not in("progress","recorded","scheduled","polled","poll_ended")]
        print("==",s.name,"|",c["state"],c["effect"],c["cause"],c["reason"],c["attempts_used"],c["error"] and c["error"][:80]); print("     "," ".join(f"{a}:{k}{f or ''}" for a,k,f in ev))
