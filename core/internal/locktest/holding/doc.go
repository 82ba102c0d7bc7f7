package holding
